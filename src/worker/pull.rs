//! [`Puller`]: the next delivery, then a slot, then a task.

use std::{convert::Infallible, future, sync::Arc};

use async_channel::Receiver;
use async_lock::Semaphore;
use futures_lite::{StreamExt, future::or};
use futures_util::stream::FuturesUnordered;

use super::dispatch::Dispatcher;
use crate::{Backend, Error, QueueConfig, Result};

/// Held by every task of a run: closed when the run is dropped.
pub(super) type Running = Receiver<Infallible>;

/// Starts the jobs of a worker's queues.
pub(super) struct Puller<B> {
    pub(super) backend: B,
    pub(super) queues: Vec<QueueConfig>,
    pub(super) slots: Arc<Semaphore>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) running: Running,
}

impl<B: Backend> Puller<B> {
    /// Starts jobs until the first subscription fails.
    ///
    /// Dropped, it gives back whatever has not started.
    pub(super) async fn pull_all(&self) -> Result<Infallible> {
        let pulls = self.queues.iter().map(|queue| self.pull(queue));
        match pulls.collect::<FuturesUnordered<_>>().next().await {
            Some(ended) => ended,
            // No queue at all: nothing to do until the shutdown.
            None => future::pending().await,
        }
    }

    async fn pull(&self, queue: &QueueConfig) -> Result<Infallible> {
        let mut deliveries = self.backend.consume(queue).await?;
        loop {
            let delivery = deliveries.next().await;
            let delivery = delivery.ok_or_else(|| Error::ConsumerStopped(queue.name.clone()))??;
            // Pull first: an idle queue must not sit on a slot another queue needs.
            let slot = self.slots.acquire_arc().await;
            let dispatcher = Arc::clone(&self.dispatcher);
            let running = self.running.clone();
            self.dispatcher.runtime.spawn(async move {
                let dropped = async {
                    let _closed = running.recv().await;
                };
                or(dropped, dispatcher.dispatch(delivery)).await;
                // The job is settled or back before the slot is free.
                drop(slot);
            })?;
        }
    }
}
