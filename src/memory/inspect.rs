//! What a test or an operator may look at: jobs by place, records by outcome, idleness.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Poll, ready},
    time::Duration,
};

use super::{MemoryBackend, clock::Alarm, content::Content, state::Queue};
use crate::{Envelope, QueueConfig};

/// How many records of each kind a queue keeps.
const KEPT: usize = 1_000;

/// Why a job was acked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AckKind {
    /// It is done.
    Succeeded,
    /// It failed and the next attempt is stored.
    Retried,
    /// It was not the time and the same attempt is stored.
    Deferred,
}

/// What has become of the jobs of one queue since it was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct MemoryCounts {
    /// Acked as done.
    pub succeeded: u64,
    /// Acked with the next attempt stored.
    pub retried: u64,
    /// Acked with the same attempt stored for later.
    pub deferred: u64,
    /// Dead-lettered with a reason.
    pub dead_lettered: u64,
    /// Dead-lettered because they were no envelopes.
    pub malformed: u64,
    /// Vanished after outliving the queue's `message_ttl`.
    pub expired: u64,
}

/// The latest outcomes of one queue, oldest first, and the counts of all.
#[derive(Debug, Default)]
pub(super) struct Records {
    acked: VecDeque<(Envelope, AckKind)>,
    dead: VecDeque<(Envelope, String)>,
    malformed: VecDeque<Vec<u8>>,
    counts: MemoryCounts,
}

impl Records {
    pub(super) fn acked(&mut self, envelope: Envelope, kind: AckKind) {
        *match kind {
            AckKind::Succeeded => &mut self.counts.succeeded,
            AckKind::Retried => &mut self.counts.retried,
            AckKind::Deferred => &mut self.counts.deferred,
        } += 1;
        keep(&mut self.acked, (envelope, kind));
    }

    pub(super) fn dead(&mut self, envelope: Envelope, reason: String) {
        self.counts.dead_lettered += 1;
        keep(&mut self.dead, (envelope, reason));
    }

    pub(super) fn malformed(&mut self, body: Vec<u8>) {
        self.counts.malformed += 1;
        keep(&mut self.malformed, body);
    }
}

fn keep<T>(records: &mut VecDeque<T>, record: T) {
    if records.len() == KEPT {
        records.pop_front();
    }
    records.push_back(record);
}

/// Of an unknown queue, every list is empty and every count 0.
impl MemoryBackend {
    /// The jobs that wait on `queue`, next first; neither those held nor those in hand.
    pub fn pending(&self, queue: &str) -> Vec<Envelope> {
        self.look(queue, |queue, _| {
            parse_all(queue.jobs.pending().map(|job| (job, ())))
                .map(|(envelope, ())| envelope)
                .collect()
        })
    }

    /// The jobs kept back for `queue` and how long each will be, next first.
    ///
    /// Delayed publishes, retries and deferrals alike.
    pub fn held(&self, queue: &str) -> Vec<(Envelope, Duration)> {
        self.look(queue, |queue, now| {
            parse_all(queue.jobs.held())
                .map(|(envelope, due)| (envelope, due.saturating_sub(now)))
                .collect()
        })
    }

    /// How many jobs of `queue` are in hand.
    pub fn unsettled(&self, queue: &str) -> usize {
        self.look(queue, |queue, _| queue.jobs.in_hand())
    }

    /// The last 1,000 jobs of `queue` that were acked and why, oldest first.
    pub fn settled(&self, queue: &str) -> Vec<(Envelope, AckKind)> {
        self.look(queue, |queue, _| {
            queue.records.acked.iter().cloned().collect()
        })
    }

    /// The jobs of [`settled`](Self::settled), whatever the reason.
    pub fn acked(&self, queue: &str) -> Vec<Envelope> {
        self.settled_as(queue, |_| true)
    }

    /// The jobs of [`settled`](Self::settled) that are done.
    pub fn succeeded(&self, queue: &str) -> Vec<Envelope> {
        self.settled_as(queue, |kind| kind == AckKind::Succeeded)
    }

    /// The jobs of [`settled`](Self::settled) that failed, as they were when they did.
    pub fn retried(&self, queue: &str) -> Vec<Envelope> {
        self.settled_as(queue, |kind| kind == AckKind::Retried)
    }

    /// The last 1,000 dead letters of `queue` and their reasons, oldest first; how each failed,
    /// [`Envelope::failure`] says.
    ///
    /// Older ones are forgotten, though still counted: to keep them all, register a
    /// [`DeadLetterHook`](crate::DeadLetterHook).
    pub fn dead_letters(&self, queue: &str) -> Vec<(Envelope, String)> {
        self.look(queue, |queue, _| {
            queue.records.dead.iter().cloned().collect()
        })
    }

    /// The last 1,000 messages on `queue` that were no envelopes, oldest first.
    pub fn malformed(&self, queue: &str) -> Vec<Vec<u8>> {
        self.look(queue, |queue, _| {
            queue.records.malformed.iter().cloned().collect()
        })
    }

    /// What has become of all jobs of `queue`, however many.
    pub fn counts(&self, queue: &str) -> MemoryCounts {
        self.look(queue, |queue, _| MemoryCounts {
            expired: queue.jobs.expired(),
            ..queue.records.counts
        })
    }

    /// The declared queues, in alphabetical order.
    pub fn queue_names(&self) -> Vec<String> {
        self.shared
            .update(|state, _| state.queues.keys().cloned().collect())
    }

    /// How `queue` was first declared.
    pub fn queue_config(&self, queue: &str) -> Option<QueueConfig> {
        self.look(queue, |queue, _| Some(queue.config.clone()))
    }

    /// Whether the backend was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.update(|state, _| state.closed)
    }

    /// Returns when no job is pending, held or in hand on any queue.
    ///
    /// Held jobs do not count under a manual clock, for which they may wait for ever; once the
    /// backend is closed, only jobs in hand count.
    pub async fn idle(&self) {
        let mut alarm = Alarm::default();
        poll_fn(|cx| {
            loop {
                let idle = self
                    .shared
                    .update(|state, _| state.idle_or_wait(cx.waker()));
                match idle {
                    Ok(()) => return Poll::Ready(()),
                    Err(wait) => alarm.set(wait),
                }
                let at = ready!(alarm.poll(cx));
                self.shared.update(|state, _| state.clock.reached(at));
            }
        })
        .await;
    }

    fn settled_as(&self, queue: &str, kind: impl Fn(AckKind) -> bool) -> Vec<Envelope> {
        self.look(queue, |queue, _| {
            let acked = queue.records.acked.iter();
            acked
                .filter(|(_, why)| kind(*why))
                .map(|(envelope, _)| envelope.clone())
                .collect()
        })
    }

    fn look<T: Default>(&self, queue: &str, look: impl FnOnce(&Queue, Duration) -> T) -> T {
        self.shared.update(|state, now| {
            let queue = state.queues.get(queue);
            queue.map(|queue| look(queue, now)).unwrap_or_default()
        })
    }
}

/// The jobs that are envelopes, each with what belongs to it.
fn parse_all<'a, T>(
    jobs: impl Iterator<Item = (&'a Content, T)>,
) -> impl Iterator<Item = (Envelope, T)> {
    jobs.filter_map(|(job, with)| Some((job.envelope().ok()?, with)))
}
