//! [`QueueState`]: one queue as a state machine; every call is told the time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::content::Content;

/// The jobs of one queue: pending, held, and how many are in hand.
#[derive(Debug)]
pub(super) struct QueueState {
    ttl: Option<Duration>,
    top: u8,
    pending: BTreeMap<Position, Message>,
    /// When each pending job expires; empty without a TTL.
    expiring: BTreeSet<(Duration, Position)>,
    held: BTreeMap<(Duration, u64), Held>,
    in_hand: usize,
    expired: u64,
    sequence: u64,
}

/// Where a job stands: behind every job of its own priority or a higher one that came earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    /// Counted from the highest priority down.
    rank: u8,
    sequence: u64,
}

#[derive(Debug)]
struct Message {
    content: Content,
    redelivered: bool,
    expires: Option<Duration>,
}

#[derive(Debug)]
struct Held {
    content: Content,
    priority: u8,
}

/// A job in hand, to be settled or given back.
#[derive(Debug)]
#[must_use]
pub(super) struct Taken {
    position: Position,
    message: Message,
}

impl Taken {
    pub(super) fn content(&self) -> &Content {
        &self.message.content
    }

    pub(super) fn into_content(self) -> Content {
        self.message.content
    }

    /// Whether it was in hand before.
    pub(super) fn redelivered(&self) -> bool {
        self.message.redelivered
    }
}

impl QueueState {
    /// An empty queue whose jobs live for `ttl` and whose highest priority is `top`.
    pub(super) fn new(ttl: Option<Duration>, top: u8) -> Self {
        Self {
            ttl,
            top,
            pending: BTreeMap::new(),
            expiring: BTreeSet::new(),
            held: BTreeMap::new(),
            in_hand: 0,
            expired: 0,
            sequence: 0,
        }
    }

    /// Appends a job behind its equals.
    pub(super) fn push(&mut self, content: Content, priority: u8, now: Duration) {
        let position = Position {
            rank: u8::MAX - priority.min(self.top),
            sequence: self.next_sequence(),
        };
        let message = Message {
            content,
            redelivered: false,
            expires: self.ttl.map(|ttl| now.saturating_add(ttl)),
        };
        self.insert(position, message);
    }

    /// Keeps a job back until `due`.
    pub(super) fn hold(&mut self, content: Content, priority: u8, due: Duration) {
        let key = (due, self.next_sequence());
        self.held.insert(key, Held { content, priority });
    }

    /// Lets time pass: pushes what is due, in due order, and drops what has expired.
    ///
    /// Returns whether a job became pending.
    pub(super) fn tick(&mut self, now: Duration) -> bool {
        let mut arrived = false;
        while let Some(entry) = self.held.first_entry()
            && entry.key().0 <= now
        {
            let ((due, _), held) = entry.remove_entry();
            self.push(held.content, held.priority, due);
            arrived = true;
        }
        while let Some(&(expires, position)) = self.expiring.first()
            && expires <= now
        {
            self.expiring.pop_first();
            self.pending.remove(&position);
            self.expired += 1;
        }
        arrived
    }

    /// Hands out the first pending job.
    pub(super) fn take(&mut self) -> Option<Taken> {
        let (position, message) = self.pending.pop_first()?;
        if let Some(expires) = message.expires {
            self.expiring.remove(&(expires, position));
        }
        self.in_hand += 1;
        Some(Taken { position, message })
    }

    /// Forgets a job in hand.
    pub(super) fn settle(&mut self, taken: Taken) -> Content {
        self.in_hand -= 1;
        taken.into_content()
    }

    /// Puts a job in hand back where it stood, to be redelivered.
    pub(super) fn give_back(&mut self, taken: Taken) {
        self.in_hand -= 1;
        let Taken {
            position,
            mut message,
        } = taken;
        message.redelivered = true;
        self.insert(position, message);
    }

    /// When the next held job falls due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.held.first_key_value().map(|((due, _), _)| *due)
    }

    /// When the next held job falls due or the next pending one expires.
    pub(super) fn next_event(&self) -> Option<Duration> {
        let expires = self.expiring.first().map(|(expires, _)| *expires);
        self.next_due().into_iter().chain(expires).min()
    }

    /// The jobs in delivery order.
    pub(super) fn pending(&self) -> impl ExactSizeIterator<Item = &Content> {
        self.pending.values().map(|message| &message.content)
    }

    /// The jobs kept back, each with when it falls due, in that order.
    pub(super) fn held(&self) -> impl ExactSizeIterator<Item = (&Content, Duration)> {
        self.held
            .iter()
            .map(|((due, _), held)| (&held.content, *due))
    }

    /// How many jobs are in hand.
    pub(super) fn in_hand(&self) -> usize {
        self.in_hand
    }

    /// How many jobs have outlived the TTL.
    pub(super) fn expired(&self) -> u64 {
        self.expired
    }

    fn insert(&mut self, position: Position, message: Message) {
        if let Some(expires) = message.expires {
            self.expiring.insert((expires, position));
        }
        self.pending.insert(position, message);
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

#[cfg(test)]
mod tests;
