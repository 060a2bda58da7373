//! [`RabbitMqDelivery`]: ack, retry, defer, dead-letter, release; publish before ack.

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use futures_util::future::BoxFuture;
use lapin::message::Delivery as Message;

use super::{
    RabbitMqOptions, acks::Answer, codec, error::lost, message::Message as Outgoing,
    subscription::Subscription,
};
use crate::{Delivery, Envelope, Error, Failure, Settled, Unsettled, runtime::client};

/// How long a job or body that could not be settled is kept from coming straight back.
pub(super) const PAUSE: Duration = Duration::from_secs(5);

/// A job from RabbitMQ.
pub struct RabbitMqDelivery {
    envelope: Envelope,
    redelivered: bool,
    crashes: u32,
    tag: u64,
    subscription: Arc<Subscription>,
    settled: bool,
}

impl RabbitMqDelivery {
    pub(super) fn new(
        envelope: Envelope,
        message: &Message,
        subscription: Arc<Subscription>,
    ) -> Self {
        let mut crashes = envelope.crashes();
        if message.redelivered {
            let times = codec::delivery_count(&message.properties);
            crashes = crashes.saturating_add(subscription.crashes(envelope.job_id, times));
        }
        Self {
            redelivered: message.redelivered || envelope.crashes() > 0,
            crashes,
            envelope,
            tag: message.delivery_tag,
            subscription,
            settled: false,
        }
    }

    /// Sends the one answer to this delivery.
    async fn answer(mut self, action: &'static str, answer: Answer) -> Settled<Self> {
        self.settled = true;
        let sent = self.subscription.answer(action, self.tag, answer).await;
        sent.map_err(Unsettled::lost)
    }

    fn options(&self) -> &RabbitMqOptions {
        self.subscription.backend.options()
    }

    /// Nothing is stored for a delivery that is gone: the broker hands the job out again.
    fn check_open(&self, action: &'static str) -> Result<(), Error> {
        if self.subscription.is_open() {
            return Ok(());
        }
        let queue = &self.subscription.queue;
        Err(lost(action, queue, "the broker hands the job out again"))
    }

    /// Holds `next` for `delay`, then acks.
    // Boxed, as is `bury`: every job would carry what few need.
    fn follow<'a>(
        self,
        action: &'static str,
        next: &'a Envelope,
        delay: Duration,
        granularity: Duration,
    ) -> BoxFuture<'a, Settled<Self>> {
        Box::pin(async move {
            self.check_open(action).map_err(Unsettled::lost)?;
            let backend = &self.subscription.backend;
            let stored = backend.hold(next, delay, granularity).await;
            self.ack_after(stored).await
        })
    }

    /// Publishes to the dead-letter queue, then acks.
    fn bury<'a>(
        self,
        failure: Option<&'a Failure>,
        reason: &'a str,
    ) -> BoxFuture<'a, Settled<Self>> {
        Box::pin(async move {
            self.check_open("dead-letter a job of")
                .map_err(Unsettled::lost)?;
            let Subscription { backend, queue, .. } = &*self.subscription;
            if !self.options().declare_dead_letter_queues {
                let id = self.envelope.job_id;
                log::warn!("job {id} of `{queue}` is rejected, no dead-letter queue: {reason}");
                return self.answer("reject a job of", Answer::Reject).await;
            }
            // A body may name a queue this backend knows nothing of: then where it was found counts.
            let queue = match backend.knows(&self.envelope.queue) {
                true => &self.envelope.queue,
                false => queue,
            };
            let failure = failure.or(self.envelope.failure());
            let letter = || Outgoing {
                properties: codec::dead_properties_with(
                    &self.envelope,
                    failure,
                    reason,
                    backend.frame_max(),
                ),
                body: self.envelope.to_bytes(),
            };
            let stored = backend.publish_dead(queue, &letter).await;
            self.ack_after(stored).await
        })
    }

    /// Acks once the successor is stored, or keeps the job in hand.
    async fn ack_after(self, stored: Result<(), Error>) -> Settled<Self> {
        match stored {
            Ok(()) => {
                let acked = self.ack().await;
                acked.map_err(|lost| Unsettled::stored(lost.error))
            }
            Err(error) => Err(Unsettled::back(self, error)),
        }
    }
}

impl Delivery for RabbitMqDelivery {
    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn redelivered(&self) -> bool {
        self.redelivered
    }

    fn crashes(&self) -> u32 {
        self.crashes
    }

    fn crashes_are_kept(&self) -> bool {
        self.subscription.counts_losses || self.subscription.backend.is_blocked()
    }

    fn is_gone(&self) -> bool {
        !self.subscription.is_open()
    }

    fn subscription(&self) -> u64 {
        self.subscription.number
    }

    async fn ack(self) -> Settled<Self> {
        self.answer("ack a job of", Answer::Ack).await
    }

    fn retry(self, next: &Envelope, delay: Duration) -> impl Future<Output = Settled<Self>> + Send {
        let granularity = self.options().retry_granularity;
        self.follow("retry a job of", next, delay, granularity)
    }

    fn defer(self, next: &Envelope, delay: Duration) -> impl Future<Output = Settled<Self>> + Send {
        let granularity = self.options().deferred_granularity;
        self.follow("defer a job of", next, delay, granularity)
    }

    fn replace(self, next: &Envelope) -> impl Future<Output = Settled<Self>> + Send {
        Box::pin(async move {
            self.check_open("store again a job of")
                .map_err(Unsettled::lost)?;
            let Subscription { backend, queue, .. } = &*self.subscription;
            let stored = backend.publish_back(queue, next).await;
            self.ack_after(stored).await
        })
    }

    fn dead_letter(self, reason: &str) -> impl Future<Output = Settled<Self>> + Send {
        self.bury(None, reason)
    }

    async fn dead_letter_with(self, failure: &Failure, reason: &str) -> Settled<Self> {
        self.bury(Some(failure), reason).await
    }

    async fn release(self) -> Settled<Self> {
        self.answer("give back a job of", Answer::GiveBack).await
    }
}

impl Drop for RabbitMqDelivery {
    fn drop(&mut self) {
        if !self.settled && !self.subscription.is_open() {
            self.subscription.lose(self.envelope.job_id);
        } else if !self.settled {
            let action = "give back a job of";
            let given_back = pin!(self.subscription.answer(action, self.tag, Answer::GiveBack));
            // The first poll hands the frame to the client; there is nothing to wait for.
            let _ = given_back.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// Moves a body that is not an envelope out of the way, byte for byte.
pub(super) async fn set_aside(
    message: Message,
    error: serde_json::Error,
    subscription: Arc<Subscription>,
) {
    let Subscription { backend, queue, .. } = &*subscription;
    let (tag, bytes) = (message.delivery_tag, message.data.len());
    log::warn!("a body of {bytes} bytes on `{queue}` is not an envelope, set aside: {error}");
    let answer = if backend.options().declare_dead_letter_queues {
        let letter = || Outgoing {
            properties: codec::malformed_properties(
                &message.properties,
                queue,
                backend.frame_max(),
            ),
            body: message.data.clone(),
        };
        match backend.publish_dead(queue, &letter).await {
            Ok(()) => Answer::Ack,
            Err(error) => {
                log::error!("a malformed body stays on `{queue}`: {}", error.chain());
                client().sleep(PAUSE).await;
                Answer::GiveBack
            }
        }
    } else {
        Answer::Reject
    };
    if let Err(error) = subscription.answer("settle a body of", tag, answer).await {
        let error = error.chain();
        log::warn!("a malformed body on `{queue}` is not settled and will come back: {error}");
    }
}

impl fmt::Debug for RabbitMqDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqDelivery")
            .field("envelope", &self.envelope)
            .field("redelivered", &self.redelivered)
            .finish()
    }
}
