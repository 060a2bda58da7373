//! [`Patience`]: how long a worker that stops waits, and for what.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use async_channel::Sender;
use futures_lite::future::or;

use super::WorkerHandle;
use crate::{Backend, Error, Result, Runtime};

/// What a worker waits for at its deadline: tasks to be dropped, and after them a backend to close.
///
/// Kubernetes leaves 5 s between the default deadline and its SIGKILL.
const LAST: Duration = Duration::from_secs(2);

/// How long a worker waits from the moment it stops. The defaults suit the 30 s of Kubernetes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Until handlers are told to end.
    pub(super) grace: Duration,
    /// Until they are dropped.
    pub(super) deadline: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(20),
            deadline: Duration::from_secs(25),
        }
    }
}

impl Patience {
    /// Waits until `alive` has no receivers: every task of the worker has one.
    pub(super) async fn drain(
        self,
        runtime: &Runtime,
        handle: &WorkerHandle,
        alive: &Sender<Infallible>,
    ) {
        let Self { grace, deadline } = self;
        let grace = grace.min(deadline);
        let stages = async {
            or(runtime.sleep(grace), handle.aborted()).await;
            if !handle.is_aborted() {
                let jobs = alive.receiver_count();
                log::warn!("{jobs} jobs run {grace:?} after the stop, and are told to end");
            }
            handle.cancel();
            or(runtime.sleep(deadline - grace), handle.aborted()).await;
            if !handle.is_aborted() {
                let jobs = alive.receiver_count();
                log::error!("{jobs} jobs run {deadline:?} after the stop, and are given back");
            }
            handle.drop_running();
            runtime.sleep(LAST).await;
            let jobs = alive.receiver_count();
            log::error!("{jobs} jobs block their thread, the worker leaves them behind");
        };
        // In this order: where the runtime is gone, so are the tasks, and its timers panic.
        or(alive.closed(), stages).await;
    }

    /// Closes `backend`, or gives up where it does not answer.
    pub(super) async fn close(
        self,
        runtime: &Runtime,
        backend: &impl Backend,
        stopped: Instant,
    ) -> Result<()> {
        if runtime.spawn(async {}).is_err() {
            // Its timers are gone too.
            return backend.close().await;
        }
        let limit = self.deadline.saturating_sub(stopped.elapsed()).max(LAST);
        let closed = runtime.timeout(limit, backend.close()).await;
        closed.unwrap_or_else(|| {
            Err(Error::TimedOut {
                action: "close",
                subject: "the backend".into(),
                limit,
            })
        })
    }
}
