//! [`Consumers`]: who takes jobs from a queue, how many each has in hand, and whom to wake.

use std::{collections::BTreeMap, task::Waker};

/// The consumers of one queue, by number.
#[derive(Debug, Default)]
pub(super) struct Consumers(BTreeMap<u64, Consumer>);

/// One subscription.
#[derive(Debug)]
pub(super) struct Consumer {
    prefetch: usize,
    in_hand: usize,
    waker: Option<Waker>,
}

impl Consumers {
    /// Adds a consumer that may have `prefetch` jobs in hand; 0 is unlimited.
    pub(super) fn add(&mut self, number: u64, prefetch: u16) {
        let prefetch = match prefetch {
            0 => usize::MAX,
            limit => limit.into(),
        };
        let consumer = Consumer {
            prefetch,
            in_hand: 0,
            waker: None,
        };
        self.0.insert(number, consumer);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Consumer> {
        self.0.remove(&number)
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Consumer> {
        self.0.get_mut(&number)
    }

    /// One job less in hand; that consumer may go on, if it is still there.
    pub(super) fn free_slot(&mut self, number: u64, woken: &mut Vec<Waker>) {
        if let Some(consumer) = self.0.get_mut(&number) {
            consumer.in_hand -= 1;
            woken.extend(consumer.waker.take());
        }
    }

    /// Wakes all that could take a job: one alone might be dropped before it does.
    pub(super) fn wake(&mut self, woken: &mut Vec<Waker>) {
        let ready = self.0.values_mut().filter(|consumer| consumer.has_room());
        woken.extend(ready.filter_map(|consumer| consumer.waker.take()));
    }

    /// Wakes all, whether or not they could take a job.
    pub(super) fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        let all = self.0.values_mut();
        woken.extend(all.filter_map(|consumer| consumer.waker.take()));
    }
}

impl Consumer {
    pub(super) fn has_room(&self) -> bool {
        self.in_hand < self.prefetch
    }

    /// One job more in hand; nothing to be woken for until asked again.
    pub(super) fn took(&mut self) -> Option<Waker> {
        self.in_hand += 1;
        self.waker.take()
    }

    /// Keeps `waker` and returns the one before.
    pub(super) fn waits(&mut self, waker: &Waker) -> Option<Waker> {
        self.waker.replace(waker.clone())
    }
}
