//! [`Drain`]: a worker empties a queue, from the first job that starts to the last that is settled.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use async_channel::{Receiver, Sender};

use super::{Failure, Figures, Meter};

/// Counts the jobs of a worker.
#[derive(Debug)]
pub struct Drain {
    jobs: u64,
    done: AtomicU64,
    meter: OnceLock<Meter>,
    end: (Sender<()>, Receiver<()>),
}

impl Drain {
    /// There are so many jobs.
    pub fn of(jobs: u64) -> Self {
        Self {
            jobs,
            done: AtomicU64::new(0),
            meter: OnceLock::new(),
            end: async_channel::bounded(1),
        }
    }

    /// A job starts.
    pub fn starts(&self) {
        self.meter.get_or_init(Meter::start);
    }

    /// A job is done.
    pub fn done(&self) {
        if self.done.fetch_add(1, Ordering::Relaxed) + 1 == self.jobs {
            let _ = self.end.0.try_send(());
        }
    }

    /// Returns when all jobs are done.
    pub async fn all_done(&self) {
        let _ = self.end.1.recv().await;
    }

    /// What it took since the first job started.
    ///
    /// # Errors
    /// When none has.
    pub fn figures(&self) -> Result<Figures, Failure> {
        let meter = self.meter.get().ok_or("no job has started")?;
        meter.stop(self.jobs)
    }
}
