//! [`Dispatcher`]: one delivery, from the lookup of its handler to its settlement.

use std::{future::Future, pin::Pin, time::Duration};

use async_lock::RwLock;
use futures_lite::future::or;

use super::{
    WorkerHandle, hook::Hook, ledger::Run, outcome::Outcome, panic::Contained, plan::Rules,
    registry::Registry, settle::Ending,
};
use crate::{Delivery, Runtime};

/// What the tasks of one worker share.
pub(super) struct Dispatcher {
    pub(super) registry: Registry,
    pub(super) hook: Option<Hook>,
    pub(super) job_timeout: Option<Duration>,
    pub(super) crash_limit: Option<u32>,
    /// Read while a job is stored again for a crash, written before one that was is run.
    pub(super) replacing: RwLock<()>,
    pub(super) runtime: Runtime,
    pub(super) handle: WorkerHandle,
}

impl Dispatcher {
    /// Runs the job in hand and settles it.
    pub(super) async fn dispatch<D: Delivery>(&self, run: Run<D>, delivery: D) {
        let envelope = delivery.envelope();
        if envelope.crashes() > 0 {
            // Its original may not be acked yet: crashing now would leave both.
            drop(self.replacing.write().await);
        }
        let (outcome, rules) = match self.registry.get(&envelope.job_type) {
            None => (Outcome::no_handler(&envelope.job_type), Rules::default()),
            Some(entry) => {
                let attempt =
                    entry.attempt(envelope, delivery.redelivered(), self.handle.on_cancel());
                (self.limited(attempt.run).await, attempt.rules)
            }
        };
        let ending = Ending::new(outcome, rules);
        self.conclude(run, delivery, ending).await;
    }

    /// Settles a job that is not to be run for what became of it elsewhere.
    pub(super) async fn dispatch_crashed<D: Delivery>(
        &self,
        run: Run<D>,
        delivery: D,
        ending: Ending,
    ) {
        let _stored_again = self.replacing.read().await;
        self.conclude(run, delivery, ending).await;
    }

    /// Does `work` and counts its end, unless the worker drops what runs.
    pub(super) async fn unless_dropped(&self, work: Pin<&mut impl Future<Output = ()>>) {
        let dropped = async {
            self.handle.aborted().await;
            true
        };
        let worked = async {
            work.await;
            false
        };
        if or(dropped, worked).await {
            self.handle.count(|counts| &mut counts.dropped);
        } else if self.handle.is_shutdown() {
            self.handle.count(|counts| &mut counts.drained);
        }
    }

    async fn limited(&self, run: Contained<'_, Outcome>) -> Outcome {
        let run = async { run.await.unwrap_or_else(|panic| Outcome::panicked(&panic)) };
        match self.job_timeout {
            None => run.await,
            Some(limit) => {
                let ended = self.runtime.timeout(limit, run).await;
                ended.unwrap_or_else(|| Outcome::timed_out(limit))
            }
        }
    }
}
