//! [`Worker::run_until_signal`]: the signals of the process as orders to a worker.

use async_signal::{Signal, Signals};
use futures_lite::{
    StreamExt,
    future::{self, or},
};

use super::{Report, Worker, WorkerHandle};
use crate::{Backend, Error, QueueSet, Result};

#[cfg(unix)]
const ORDERS: &[Signal] = &[Signal::Term, Signal::Int];
#[cfg(not(unix))]
const ORDERS: &[Signal] = &[Signal::Int];

impl<Q: QueueSet, B: Backend> Worker<Q, B> {
    /// Like [`run`](Self::run), obeying SIGTERM and SIGINT (Ctrl-C): the first of them is
    /// [`shutdown`](WorkerHandle::shutdown), the next [`abort`](WorkerHandle::abort).
    ///
    /// Once it was called, these signals no longer end the process by themselves, also when the
    /// run is over. Outside Unix, there is Ctrl-C only. Needs the feature `signals`.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when the system refuses to report signals.
    pub async fn run_until_signal(self) -> Result<Report> {
        let signals = Signals::new(ORDERS)
            .map_err(|error| Error::broker("listen for", "SIGTERM and SIGINT", error))?;
        let handle = self.handle();
        or(self.run(), async {
            obey(signals, &handle).await;
            future::pending().await
        })
        .await
    }
}

async fn obey(mut signals: Signals, handle: &WorkerHandle) {
    let mut order: fn(&WorkerHandle) = WorkerHandle::shutdown;
    while let Some(signal) = signals.next().await {
        match signal {
            Ok(signal) => log::info!("the worker is told to stop by {signal:?}"),
            Err(error) => return log::error!("signals are no longer heard: {error}"),
        }
        order(handle);
        order = WorkerHandle::abort;
    }
}
