//! [`Mail`]: the job of the benchmark, about 250 bytes of JSON on the wire.

use std::{
    sync::{LazyLock, Mutex, PoisonError},
    time::Instant,
};

use serde::{Deserialize, Serialize};

use super::Figures;

/// The name the job travels under.
pub const JOB_TYPE: &str = "mail";

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What a job says. Each program derives its library's `Job` on a type around it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mail {
    /// Nanoseconds between the start of the process and the enqueue call.
    pub sent: u64,
    /// Whom it goes to.
    pub to: String,
    /// What it is about.
    pub subject: String,
}

impl Mail {
    /// One that is sent now.
    pub fn new() -> Self {
        Self {
            // Never so short that the size of the message depends on it.
            sent: 1_000_000_000_000 + nanos(),
            to: "someone@example.com".into(),
            subject: "Your order is on its way".into(),
        }
    }

    /// How long ago it was sent, by this process.
    pub fn age_us(&self) -> f64 {
        (1_000_000_000_000 + nanos() - self.sent) as f64 / 1000.0
    }
}

impl Default for Mail {
    fn default() -> Self {
        Self::new()
    }
}

fn nanos() -> u64 {
    START.elapsed().as_nanos().try_into().unwrap_or(u64::MAX)
}

/// The time jobs took to arrive.
#[derive(Debug, Default)]
pub struct Latencies(Mutex<Vec<f64>>);

impl Latencies {
    /// `mail` has arrived.
    pub fn arrived(&self, mail: &Mail) {
        let age = mail.age_us();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(age);
    }

    /// How many have arrived.
    pub fn count(&self) -> u64 {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
            .try_into()
            .unwrap_or(u64::MAX)
    }

    /// Completes `figures`, without the first `warm_up` jobs.
    pub fn complete(&self, figures: &mut Figures, warm_up: usize) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<f64> = all.iter().skip(warm_up).copied().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (share * sorted.len() as f64) as usize;
            sorted.get(index).copied().unwrap_or(f64::NAN)
        };
        figures.p50_us = at(0.5);
        figures.p99_us = at(0.99);
    }
}
