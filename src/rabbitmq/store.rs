//! Where a successor is stored before its original is acked.

use std::time::Duration;

use super::{
    Inner, RabbitMqBackend, hold, ladder,
    message::{Compose, Route},
};
use crate::{Envelope, Error, QueueKind, Result};

pub(super) const DELAY: &str = "delay a job of";

impl RabbitMqBackend {
    /// Stores the dead letter of a job of `queue`.
    pub(super) async fn publish_dead(&self, queue: &str, letter: Compose<'_>) -> Result<()> {
        let dead = self.dead_queue_name(queue);
        let publisher = &self.open()?.publisher;
        publisher.publish(Route::back_to(&dead)?, letter).await
    }

    /// Stores `envelope` on the queue it was found on, whatever its body says.
    pub(super) async fn publish_back(&self, queue: &str, envelope: &Envelope) -> Result<()> {
        let publisher = &self.open()?.publisher;
        let message = || publisher.message(envelope);
        publisher.publish(Route::back_to(queue)?, &message).await
    }

    /// Stores `envelope` where it waits for `delay` and then returns to its queue.
    pub(super) async fn hold(
        &self,
        envelope: &Envelope,
        delay: Duration,
        granularity: Duration,
    ) -> Result<()> {
        let Inner {
            options,
            holds,
            ladders,
            declared,
            ..
        } = self.open()?;
        let queue = &envelope.queue;
        let (kind, durable) = declared
            .kind(queue)
            .ok_or_else(|| Error::UnknownQueue(queue.clone()))?;
        match kind {
            QueueKind::Classic => {
                let ttl = hold::ttl_ms(queue, delay, granularity)?;
                holds
                    .store(envelope, &options.deferred_suffix, durable, ttl)
                    .await
            }
            QueueKind::Quorum => {
                let seconds = ladder::seconds(queue, delay, granularity)?;
                ladders.store(envelope, seconds).await
            }
        }
    }
}
