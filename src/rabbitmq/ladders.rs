//! [`Ladders`]: stores jobs of quorum queues where they wait.

use futures_util::future::BoxFuture;

use super::{
    declare_ladders::declare,
    ladder::{self, Ladder},
    message::Route,
    publish::Publisher,
    store::DELAY,
    version::expires_by_priority,
};
use crate::{Envelope, Error, Result};

/// Stores jobs of quorum queues where they wait.
#[derive(Debug)]
pub(super) struct Ladders {
    publisher: Publisher,
}

impl Ladders {
    pub(super) fn new(publisher: Publisher) -> Self {
        Self { publisher }
    }

    /// Stores `envelope` where it waits for so many `seconds` and then returns to its queue.
    pub(super) fn store<'a>(
        &'a self,
        envelope: &'a Envelope,
        seconds: u32,
    ) -> BoxFuture<'a, Result<()>> {
        let queue = &envelope.queue;
        let stored = async move {
            let live = self.publisher.link.get(DELAY, queue).await?;
            let by_priority = expires_by_priority(live.returns.version());
            let exchange = Ladder::of(envelope.priority, by_priority).exchange(seconds);
            let route = Route::by(&exchange, &ladder::routing_key(queue, seconds), queue);
            let message = || self.publisher.message(envelope);
            match self.publisher.publish_by(&route, &message).await {
                // Somebody has deleted a part of the ladder.
                Err(Error::Unroutable { .. } | Error::Broker { .. }) => {
                    self.declare(queue).await?;
                    self.publisher.publish_by(&route, &message).await
                }
                verdict => verdict,
            }
        };
        Box::pin(self.publisher.in_time(DELAY, queue, stored))
    }

    async fn declare(&self, queue: &str) -> Result<()> {
        let link = &self.publisher.link;
        loop {
            let live = link.get(DELAY, queue).await?;
            match declare(&live).await {
                Err(Error::Disconnected { .. }) => link.come_again(DELAY, queue).await?,
                answer => return answer,
            }
        }
    }
}
