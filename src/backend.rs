//! [`Backend`] and [`Delivery`]: the contract between a transport and the rest.
//!
//! Three rules hold for every backend:
//!
//! 1. **Publish before ack.** Retry, defer and dead-letter store the successor first and ack second.
//!    A crash in between duplicates work; nothing is ever lost.
//! 2. **Never early.** Nothing is delivered before its delay has passed.
//! 3. **Dropped means back.** A delivery or stream dropped unsettled returns its jobs to the queue.

use std::{fmt, future::Future, time::Duration};

use futures_core::Stream;

use crate::{Envelope, Error, Failure, QueueConfig, Result, Runtime, SubscriptionWatch};

/// A transport. Clones share one connection.
pub trait Backend: Clone + Send + Sync + 'static {
    /// One job in hand.
    type Delivery: Delivery;
    /// A subscription.
    type Deliveries: Stream<Item = Result<Self::Delivery>> + Send + Unpin + 'static;

    /// Creates the queues and whatever stands beside them. Idempotent; creates nothing when one of
    /// the names is refused.
    fn declare(&self, queues: &[QueueConfig]) -> impl Future<Output = Result<()>> + Send;

    /// Puts `envelope` on its queue, after `delay` if there is one; returns when the broker has it.
    fn publish(
        &self,
        envelope: &Envelope,
        delay: Option<Duration>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Like a delayed [`publish`](Self::publish), for a job that is to return at its own priority.
    fn defer(
        &self,
        envelope: &Envelope,
        delay: Duration,
    ) -> impl Future<Output = Result<()>> + Send;

    /// A subscription holding at most `queue.prefetch` unsettled deliveries.
    ///
    /// The stream ends when the backend is closed, and with an error when the broker is lost.
    fn consume(&self, queue: &QueueConfig)
    -> impl Future<Output = Result<Self::Deliveries>> + Send;

    /// Like [`consume`](Self::consume), and tells `watch` when the subscription is made, lost, and
    /// made again.
    fn consume_watched(
        &self,
        queue: &QueueConfig,
        watch: SubscriptionWatch,
    ) -> impl Future<Output = Result<Self::Deliveries>> + Send {
        async move {
            let deliveries = self.consume(queue).await?;
            watch.subscribed();
            Ok(deliveries)
        }
    }

    /// Ends every stream; later calls answer [`Error::Closed`].
    fn close(&self) -> impl Future<Output = Result<()>> + Send;

    /// How long a job of `queue` may be in hand before the broker takes it back, as far as that is
    /// known once it is consumed; `None` when there is no such limit.
    fn ack_timeout(&self, _queue: &QueueConfig) -> Option<Duration> {
        None
    }

    /// Where workers on this backend run handlers unless told otherwise.
    fn runtime(&self) -> Runtime {
        Runtime::default()
    }
}

/// A job in hand, to be settled once. Dropped unsettled, it goes back to its queue.
pub trait Delivery: Sized + Send + 'static {
    /// What was delivered.
    fn envelope(&self) -> &Envelope;

    /// Whether the broker handed this job out before and never heard of it again.
    fn redelivered(&self) -> bool;

    /// How often a process ended, or may have, while it had this attempt of the job in hand: what
    /// [`Envelope::crashes`] says, and this time.
    ///
    /// A backend that cannot tell says 0.
    fn crashes(&self) -> u32 {
        0
    }

    /// Whether the broker keeps count of [`crashes`](Self::crashes); else the next delivery only
    /// knows of them if the job is stored again. Also where nothing can be stored at the moment: the
    /// job is then run all the same.
    fn crashes_are_kept(&self) -> bool {
        false
    }

    /// Whether the broker has taken it back, as with its connection: it hands the job out again.
    fn is_gone(&self) -> bool {
        false
    }

    /// Which subscription of this process it came by. A job that comes back by the one on which it was
    /// acked is another job: its ack could only be lost with that subscription.
    fn subscription(&self) -> u64 {
        0
    }

    /// Done: remove the job.
    fn ack(self) -> impl Future<Output = Settled<Self>> + Send;

    /// Failed: store `next` for after `delay`, then ack.
    fn retry(self, next: &Envelope, delay: Duration) -> impl Future<Output = Settled<Self>> + Send;

    /// Not now: store `next` for after `delay`, to return at its own priority, then ack.
    fn defer(self, next: &Envelope, delay: Duration) -> impl Future<Output = Settled<Self>> + Send;

    /// Not to be run from this delivery: store `next` for now, then ack.
    fn replace(self, next: &Envelope) -> impl Future<Output = Settled<Self>> + Send {
        self.defer(next, Duration::ZERO)
    }

    /// Failed for good: move the job to the dead-letter queue with `reason`.
    fn dead_letter(self, reason: &str) -> impl Future<Output = Settled<Self>> + Send;

    /// Like [`dead_letter`](Self::dead_letter), and the dead letter carries `failure`; without it,
    /// it carries what the job came with.
    ///
    /// A backend that keeps no such record keeps the reason.
    fn dead_letter_with(
        self,
        failure: &Failure,
        reason: &str,
    ) -> impl Future<Output = Settled<Self>> + Send {
        let _ = failure;
        self.dead_letter(reason)
    }

    /// Give the job back to its queue now, unchanged.
    fn release(self) -> impl Future<Output = Settled<Self>> + Send;
}

/// The answer to a settlement.
pub type Settled<D> = Result<(), Unsettled<D>>;

/// A settlement that failed.
pub struct Unsettled<D> {
    /// Why.
    pub error: Error,
    /// The delivery, when nothing was acked and it may be settled another way.
    pub delivery: Option<D>,
    /// Whether the successor is stored, so that the job only has to be acked should it come back.
    pub stored: bool,
}

impl<D> Unsettled<D> {
    /// Nothing was acked: `delivery` may be settled another way.
    pub fn back(delivery: D, error: Error) -> Self {
        Self {
            error,
            delivery: Some(delivery),
            stored: false,
        }
    }

    /// Whether the delivery was settled is unknown; the broker may hand it out again.
    ///
    /// Before a successor is stored, the answer for a delivery that is known to be gone.
    pub fn lost(error: Error) -> Self {
        Self {
            error,
            delivery: None,
            stored: false,
        }
    }

    /// Like [`lost`](Self::lost), after the successor was stored.
    pub fn stored(error: Error) -> Self {
        Self {
            stored: true,
            ..Self::lost(error)
        }
    }
}

impl<D> From<Unsettled<D>> for Error {
    fn from(unsettled: Unsettled<D>) -> Self {
        unsettled.error
    }
}

impl<D> fmt::Debug for Unsettled<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsettled")
            .field("error", &self.error)
            .field("in_hand", &self.delivery.is_some())
            .field("stored", &self.stored)
            .finish()
    }
}
