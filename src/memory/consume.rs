//! [`MemoryDeliveries`]: a subscription.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use super::{
    clock::Alarm,
    settle::{Hand, MemoryDelivery},
    state::{Next, Shared},
};
use crate::{Chain, Result};

/// A subscription to a queue of the [`MemoryBackend`](crate::MemoryBackend).
///
/// Takes a job from the queue only when it is asked for one.
#[derive(Debug)]
pub struct MemoryDeliveries {
    shared: Arc<Shared>,
    queue: Arc<str>,
    consumer: u64,
    alarm: Alarm,
}

impl MemoryDeliveries {
    pub(super) fn new(shared: Arc<Shared>, queue: &str, consumer: u64) -> Self {
        Self {
            shared,
            queue: queue.into(),
            consumer,
            alarm: Alarm::default(),
        }
    }
}

impl Stream for MemoryDeliveries {
    type Item = Result<MemoryDelivery>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let (next, before) = this
                .shared
                .update(|state, _| state.next(&this.queue, this.consumer, cx.waker()));
            drop(before);
            let taken = match next {
                Next::Closed => return Poll::Ready(None),
                Next::Taken(taken) => taken,
                Next::Nothing(wait) => {
                    this.alarm.set(wait);
                    let at = ready!(this.alarm.poll(cx));
                    this.shared.update(|state, _| state.clock.reached(at));
                    continue;
                }
            };
            let parsed = taken.content().envelope();
            let hand = Hand::new(&this.shared, &this.queue, this.consumer, taken);
            match parsed {
                Ok(envelope) => return Poll::Ready(Some(Ok(hand.into_delivery(envelope)))),
                Err(error) => {
                    log::warn!(
                        "a message on `{}` is not an envelope and was dead-lettered: {}",
                        this.queue,
                        Chain(&error)
                    );
                    hand.malformed();
                }
            }
        }
    }
}

impl Drop for MemoryDeliveries {
    fn drop(&mut self) {
        let consumer = self
            .shared
            .update(|state, _| state.unsubscribe(&self.queue, self.consumer));
        drop(consumer);
    }
}
