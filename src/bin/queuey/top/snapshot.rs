//! [`Snapshot`]: what is known of the queues at one moment, from whatever source.

use std::time::{Duration, Instant};

use queuey_rabbitmq::{Chain, Error, Result, admin::Admin};

#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) at: Instant,
    pub(crate) queues: Vec<Counts>,
}

/// What is known of one queue; what is not is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) queue: String,
    pub(crate) ready: Option<u64>,
    pub(crate) consumers: Option<u64>,
    pub(crate) dead: Option<u64>,
    pub(crate) waiting: Option<u64>,
    /// Why nothing is known of it.
    pub(crate) trouble: Option<String>,
}

impl Snapshot {
    /// Asks the broker about each of `queues`, and about those where jobs wait as long as `holds`.
    ///
    /// # Errors
    /// When the connection is lost. What is wrong with one queue is told in its place.
    pub(crate) async fn by_amqp(
        admin: &Admin,
        queues: &[String],
        holds: &[Duration],
    ) -> Result<Self> {
        let mut all = vec![];
        for queue in queues {
            let mut counts = Counts {
                queue: queue.clone(),
                ..Counts::default()
            };
            match counts.ask(admin, holds).await {
                Err(error @ (Error::Disconnected { .. } | Error::Closed)) => return Err(error),
                Err(error) => counts.trouble = Some(Chain(&error).to_string()),
                Ok(()) => {}
            }
            all.push(counts);
        }
        Ok(Self {
            at: Instant::now(),
            queues: all,
        })
    }
}

impl Counts {
    async fn ask(&mut self, admin: &Admin, holds: &[Duration]) -> Result<()> {
        let backend = admin.backend();
        let Some(depth) = admin.depth(&self.queue).await? else {
            self.trouble = Some("there is no such queue".into());
            return Ok(());
        };
        self.ready = Some(depth.ready.into());
        self.consumers = Some(depth.consumers.into());
        let dead = admin.depth(&backend.dead_queue_name(&self.queue)).await?;
        self.dead = dead.map(|dead| dead.ready.into());
        let mut waiting = (!holds.is_empty()).then_some(0);
        for hold in holds {
            let ttl = u64::try_from(hold.as_millis()).unwrap_or(u64::MAX);
            let hold = backend.hold_queue_name(&self.queue, ttl);
            let held = admin.depth(&hold).await?;
            waiting = waiting.map(|sum| sum + held.map_or(0, |held| u64::from(held.ready)));
        }
        self.waiting = waiting;
        Ok(())
    }
}
