//! [`Request`]: what one process is asked to do.

use std::{collections::HashMap, env, sync::OnceLock};

use super::{Failure, Figures};

static REQUEST: OnceLock<Request> = OnceLock::new();

/// A scenario and its `key=value` settings.
#[derive(Debug)]
pub struct Request {
    /// What to measure.
    pub scenario: String,
    /// The broker.
    pub url: String,
    values: HashMap<String, String>,
}

impl Request {
    /// What this process was asked, from its arguments and `AMQP_URL`.
    ///
    /// # Panics
    /// Without a scenario or a broker.
    pub fn get() -> &'static Self {
        REQUEST.get_or_init(|| {
            let mut arguments = env::args().skip(1);
            Self {
                scenario: arguments.next().expect("a scenario"),
                url: env::var("AMQP_URL").expect("AMQP_URL names a broker"),
                values: arguments
                    .filter_map(|setting| {
                        let (key, value) = setting.split_once('=')?;
                        Some((key.into(), value.into()))
                    })
                    .collect(),
            }
        })
    }

    /// The queue everything goes through.
    ///
    /// # Panics
    /// When none is given.
    pub fn queue(&self) -> &str {
        self.values.get("queue").expect("queue=NAME")
    }

    /// A number, or what it is by default.
    ///
    /// # Panics
    /// When it is not one.
    pub fn number<N: TryFrom<u64>>(&self, key: &str, default: u64) -> N {
        let number = self.values.get(key).map_or(default, |value| {
            value.parse().unwrap_or_else(|_| panic!("{key}={value}"))
        });
        N::try_from(number).unwrap_or_else(|_| panic!("{key}={number}"))
    }

    /// How many jobs to measure.
    pub fn jobs(&self) -> u64 {
        self.number("jobs", 1000)
    }

    /// How many tasks enqueue, or publishes are in flight, at once.
    pub fn tasks(&self) -> u64 {
        self.number("tasks", 1)
    }

    /// Unsettled deliveries a worker may hold.
    pub fn prefetch(&self) -> u16 {
        self.number("prefetch", 16)
    }

    /// The priority levels of the queue.
    pub fn priorities(&self) -> u8 {
        self.number("priorities", 10)
    }

    /// How long to idle, or to send jobs.
    pub fn seconds(&self) -> u64 {
        self.number("seconds", 10)
    }

    /// The end of a program: its figures on standard output, or what went wrong as its error.
    ///
    /// # Errors
    /// What went wrong.
    pub fn answer(figures: Result<Figures, Failure>) -> Result<(), Failure> {
        println!("{}", serde_json::to_string(&figures?)?);
        Ok(())
    }
}
