//! One queue's loop: the next delivery, then a slot, then a task.

use std::{convert::Infallible, sync::Arc};

use async_channel::Receiver;
use futures_lite::{StreamExt, future};

use super::Worker;
use crate::{Backend, Error, QueueConfig, QueueSet, Result};

/// Held by every task of a run: closed when the run is dropped.
pub(super) type Running = Receiver<Infallible>;

impl<Q: QueueSet, B: Backend> Worker<Q, B> {
    /// Starts the jobs of one queue until the subscription fails.
    ///
    /// Dropped, it gives back whatever has not started.
    pub(super) async fn pull(&self, queue: &QueueConfig, running: &Running) -> Result<Infallible> {
        let mut deliveries = self.backend.consume(queue).await?;
        loop {
            let delivery = deliveries.next().await;
            let delivery = delivery.ok_or_else(|| Error::ConsumerStopped(queue.name.clone()))??;
            // Pull first: an idle queue must not sit on a slot another queue needs.
            let slot = self.slots.acquire_arc().await;
            let dispatcher = Arc::clone(&self.dispatcher);
            let running = running.clone();
            self.dispatcher.runtime.spawn(async move {
                let dropped = async {
                    let _closed = running.recv().await;
                };
                future::or(dropped, dispatcher.dispatch(delivery)).await;
                // The job is settled or back before the slot is free.
                drop(slot);
            })?;
        }
    }
}
