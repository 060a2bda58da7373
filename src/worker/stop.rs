//! [`WorkerHandle`], to stop and watch a worker, and [`Report`], how it went.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{QueueConfig, QueueHealth, SubscriptionWatch, latch::Latch};

/// Stops a worker and counts for it. Clones are the same handle.
#[derive(Clone)]
pub struct WorkerHandle {
    stop: Latch,
    cancel: Latch,
    abort: Latch,
    counts: Arc<Mutex<Counts>>,
    watches: Arc<[SubscriptionWatch]>,
}

impl WorkerHandle {
    pub(super) fn new(queues: &[QueueConfig]) -> Self {
        let watches = queues.iter().map(|it| SubscriptionWatch::new(&it.name));
        Self {
            stop: Latch::new(),
            cancel: Latch::new(),
            abort: Latch::new(),
            counts: Arc::default(),
            watches: watches.collect(),
        }
    }

    /// Asks the worker to stop and returns at once; another call changes nothing.
    ///
    /// What has not started goes back to its queue at once. What runs is waited for, told to end
    /// after [`shutdown_grace`](crate::WorkerBuilder::shutdown_grace) and dropped at
    /// [`shutdown_deadline`](crate::WorkerBuilder::shutdown_deadline), which gives its job back.
    /// Then [`Worker::run`](crate::Worker::run) returns. Before `run`, it makes `run` return at
    /// once.
    pub fn shutdown(&self) {
        self.stop.raise();
    }

    /// Like [`shutdown`](Self::shutdown), with its deadline now.
    pub fn abort(&self) {
        self.shutdown();
        self.drop_running();
    }

    /// Whether [`shutdown`](Self::shutdown) or [`abort`](Self::abort) was called.
    pub fn is_shutdown(&self) -> bool {
        self.stop.is_raised()
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        *self.locked()
    }

    /// [`Counts::settle_failures`] so far.
    pub fn settle_failures(&self) -> u64 {
        self.locked().settle_failures
    }

    /// Whether the worker gets the jobs of its queues, in the order of
    /// [`Worker::queues`](crate::Worker::queues).
    pub fn health(&self) -> Vec<QueueHealth> {
        self.watches.iter().map(SubscriptionWatch::health).collect()
    }

    pub(super) fn watches(&self) -> &[SubscriptionWatch] {
        &self.watches
    }

    /// Returns once [`shutdown`](Self::shutdown) was called.
    pub(super) async fn stopped(&self) {
        self.stop.raised().await;
    }

    /// Tells the handlers to end.
    pub(super) fn cancel(&self) {
        self.cancel.raise();
    }

    /// What [`cancel`](Self::cancel) raises.
    pub(super) fn on_cancel(&self) -> &Latch {
        &self.cancel
    }

    /// Drops the handlers, which gives their jobs back.
    pub(super) fn drop_running(&self) {
        self.cancel();
        self.abort.raise();
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.abort.is_raised()
    }

    /// Returns once the handlers are to be dropped.
    pub(super) async fn aborted(&self) {
        self.abort.raised().await;
    }

    pub(super) fn count(&self, what: fn(&mut Counts) -> &mut u64) {
        *what(&mut self.locked()) += 1;
    }

    fn locked(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle")
            .field("is_shutdown", &self.is_shutdown())
            .field("counts", &self.counts())
            .finish()
    }
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Why it ended.
    pub reason: StopReason,
    /// What it did.
    pub counts: Counts,
}

impl Report {
    pub(super) fn new(reason: StopReason, counts: Counts) -> Self {
        Self { reason, counts }
    }
}

/// Why a worker ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// [`WorkerHandle::shutdown`] was called.
    Shutdown,
}

/// What a worker did, run by run: a job retried twice and then done counts three times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Done, and removed from the queue.
    pub succeeded: u64,
    /// Failed, and stored for another attempt.
    pub retried: u64,
    /// Not failed, and stored for later.
    pub deferred: u64,
    /// Moved to the dead letters.
    pub dead_lettered: u64,
    /// Came back while or after they ran, and were not run again.
    pub recognised: u64,
    /// Were in the hands of a process that ended without an answer, and were stored again with that
    /// counted, before they ran here; see
    /// [`crash_limit`](crate::WorkerBuilder::crash_limit).
    pub crashed: u64,
    /// Given back to the queue because they could not be settled.
    pub given_back: u64,
    /// Ended after the shutdown was asked for; counted by what came of them, too.
    pub drained: u64,
    /// Given back when the worker stopped, before they started. What the backend had prefetched
    /// and not handed over yet goes back as well, and is not counted.
    pub unstarted: u64,
    /// Dropped before they had ended, by the deadline of a shutdown or with the worker's `run`,
    /// and given back.
    pub dropped: u64,
    /// Settlements the backend did not carry out, whatever came of the job then.
    pub settle_failures: u64,
}
