//! [`MemoryDelivery`]: a job in hand; dropped, it goes back.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    inspect::AckKind,
    queue::Taken,
    state::{Shared, State},
};
use crate::{Delivery, Envelope, Failure, Result, Settled, Unsettled};

/// A job taken from a queue of the [`MemoryBackend`](crate::MemoryBackend).
///
/// Given back, it returns to where it stood, and is redelivered.
pub struct MemoryDelivery {
    envelope: Envelope,
    redelivered: bool,
    hand: Hand,
}

/// Holds a job until it is settled.
pub(super) struct Hand {
    shared: Arc<Shared>,
    queue: Arc<str>,
    consumer: u64,
    taken: Option<Taken>,
}

impl Hand {
    pub(super) fn new(shared: &Arc<Shared>, queue: &Arc<str>, consumer: u64, taken: Taken) -> Self {
        Self {
            shared: Arc::clone(shared),
            queue: Arc::clone(queue),
            consumer,
            taken: Some(taken),
        }
    }

    pub(super) fn into_delivery(self, envelope: Envelope) -> MemoryDelivery {
        let redelivered = self.taken.as_ref().is_some_and(Taken::redelivered);
        MemoryDelivery {
            envelope,
            redelivered,
            hand: self,
        }
    }

    /// Moves a body that is no envelope to the dead letters.
    pub(super) fn malformed(mut self) {
        if let Some(taken) = self.taken.take() {
            self.shared.update(|state, _| {
                let content = state.settle(&self.queue, self.consumer, taken);
                if let Some(records) = state.records(&[&self.queue]) {
                    records.malformed(content.body);
                }
            });
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.shared
                .update(|state, _| state.give_back(&self.queue, self.consumer, taken));
        }
    }
}

/// What becomes of a settled job in the records.
enum Record {
    Acked(AckKind),
    Dead(String),
    /// Nothing: it is on its queue as before.
    Replaced,
}

#[allow(
    clippy::result_large_err,
    reason = "by contract the delivery comes back in the error"
)]
impl MemoryDelivery {
    /// Runs `store` and, unless it refuses, settles the job; nobody sees the one without the other.
    fn settle(
        self,
        record: Record,
        store: impl FnOnce(&mut State, Duration) -> Result<()>,
    ) -> Settled<Self> {
        let shared = Arc::clone(&self.hand.shared);
        shared.update(|state, now| {
            if let Err(error) = store(state, now) {
                return Err(Unsettled::back(self, error));
            }
            let Self {
                envelope, mut hand, ..
            } = self;
            if let Some(taken) = hand.taken.take() {
                state.settle(&hand.queue, hand.consumer, taken);
            }
            // A body may name another queue than it was found on: its dead letters are there.
            let names = match &record {
                Record::Acked(_) | Record::Replaced => &[&*hand.queue][..],
                Record::Dead(_) => &[&*envelope.queue, &*hand.queue],
            };
            match (state.records(names), record) {
                (Some(records), Record::Acked(kind)) => records.acked(envelope, kind),
                (Some(records), Record::Dead(reason)) => records.dead(envelope, reason),
                (Some(_), Record::Replaced) | (None, _) => {}
            }
            Ok(())
        })
    }

    fn bury(self, reason: &str) -> Settled<Self> {
        self.settle(Record::Dead(reason.into()), |state, _| state.check_open())
    }

    /// Stores `next` for after `delay`, then acks.
    fn follow(self, kind: AckKind, next: &Envelope, delay: Duration) -> Settled<Self> {
        let content = next.into();
        self.settle(Record::Acked(kind), |state, now| {
            state.put(&next.queue, content, next.priority, Some(delay), now)
        })
    }
}

impl Delivery for MemoryDelivery {
    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn redelivered(&self) -> bool {
        self.redelivered || self.envelope.crashes > 0
    }

    fn crashes(&self) -> u32 {
        let this_time = u32::from(self.redelivered);
        self.envelope.crashes.saturating_add(this_time)
    }

    async fn ack(self) -> Settled<Self> {
        self.settle(Record::Acked(AckKind::Succeeded), |_, _| Ok(()))
    }

    async fn retry(self, next: &Envelope, delay: Duration) -> Settled<Self> {
        self.follow(AckKind::Retried, next, delay)
    }

    async fn defer(self, next: &Envelope, delay: Duration) -> Settled<Self> {
        self.follow(AckKind::Deferred, next, delay)
    }

    async fn replace(self, next: &Envelope) -> Settled<Self> {
        let (content, queue) = (next.into(), Arc::clone(&self.hand.queue));
        self.settle(Record::Replaced, |state, now| {
            state.put(&queue, content, next.priority, None, now)
        })
    }

    async fn dead_letter(self, reason: &str) -> Settled<Self> {
        self.bury(reason)
    }

    async fn dead_letter_with(mut self, failure: &Failure, reason: &str) -> Settled<Self> {
        let known = self.envelope.failure.take();
        self.envelope = self.envelope.with_failure(failure);
        let mut settled = self.bury(reason);
        if let Err(Unsettled {
            delivery: Some(back),
            ..
        }) = &mut settled
        {
            back.envelope.failure = known;
        }
        settled
    }

    async fn release(self) -> Settled<Self> {
        drop(self);
        Ok(())
    }
}

impl fmt::Debug for MemoryDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDelivery")
            .field("envelope", &self.envelope)
            .field("redelivered", &self.redelivered)
            .finish_non_exhaustive()
    }
}
