//! [`Ledger`]: the runs of one worker, so that a job that comes back meanwhile is not run again.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    hash::{Hash, Hasher},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use uuid::Uuid;

use super::settle::Ending;
use crate::Envelope;

// A job comes back within seconds of its connection, and no more of them than ran at once; what is
// still here after an hour went to another worker.
const MOST_KEPT: usize = 10_000;
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// What a run is known by: the job, and which of its messages, for it may have been enqueued or
/// replayed again under its old id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    job_id: Uuid,
    attempt: u32,
    deferrals: u32,
    crashes: u32,
    enqueued_at_ms: u64,
    failed_at_ms: Option<u64>,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Tells almost all apart, and is hashed several times a job.
        self.job_id.hash(state);
    }
}

impl Key {
    pub(super) fn of(envelope: &Envelope) -> Self {
        Self {
            job_id: envelope.job_id,
            attempt: envelope.attempt,
            deferrals: envelope.deferrals,
            crashes: envelope.crashes(),
            enqueued_at_ms: envelope.enqueued_at_ms,
            failed_at_ms: envelope.failure().map(|failure| failure.failed_at_ms),
        }
    }
}

// A broker that hears nothing notices within two heartbeats, of 60 s unless told otherwise; then the
// job comes to whoever is there.
const SETTLED_FOR: Duration = Duration::from_secs(600);

/// The runs in progress, how those ended whose settlement failed, and the last that were settled:
/// an ack can be lost without a word, on its way or with a broker that had not written it down.
pub(super) struct Ledger<D>(Mutex<Pages<D>>);

struct Pages<D> {
    jobs: HashMap<Key, Known<D>>,
    /// When each ending was kept, oldest first, also of those that were asked for since.
    kept: VecDeque<(Instant, Key)>,
    /// The last jobs that were settled, oldest first.
    settled: VecDeque<Settled>,
}

struct Settled {
    key: Key,
    at: Instant,
    /// What carried the ack.
    subscription: u64,
}

/// What is known of one key. Forgotten once nothing runs and nothing is kept.
struct Known<D> {
    /// More than one when the same job was enqueued twice.
    running: usize,
    /// Came back during these runs; the newest last.
    twins: Vec<D>,
    endings: Vec<(Instant, Ending)>,
}

/// A run in progress. Dropped, it is forgotten.
pub(super) struct Run<D> {
    ledger: Arc<Ledger<D>>,
    key: Key,
}

/// What a redelivered job is to this worker.
pub(super) enum Arrival<D> {
    /// Nothing is known of it.
    New(D),
    /// Its run, which goes on, will settle it.
    Running,
    /// Its run has ended and it is to be settled like this.
    Ended(Run<D>, D, Ending),
    /// Its run was settled, and nobody heard of it.
    Settled(D),
}

impl<D> Ledger<D> {
    pub(super) fn start(self: &Arc<Self>, key: Key) -> Run<D> {
        self.pages().jobs.entry(key).or_default().running += 1;
        Run {
            ledger: Arc::clone(self),
            key,
        }
    }

    /// Whether `delivery` came back, by this subscription, during or after its run.
    pub(super) fn recognise(
        self: &Arc<Self>,
        key: Key,
        subscription: u64,
        delivery: D,
        now: Instant,
    ) -> Arrival<D> {
        let mut pages = self.pages();
        pages.forget_old(now);
        let Some(known) = pages.jobs.get_mut(&key) else {
            // What was stored again for a crash may be there twice, and is never enqueued.
            let is_lost = |settled: &Settled| {
                settled.key == key
                    && (settled.subscription != subscription || key.crashes > 0)
                    && now.saturating_duration_since(settled.at) <= SETTLED_FOR
            };
            let Some(found) = pages.settled.iter().position(is_lost) else {
                return Arrival::New(delivery);
            };
            // It stands for one message; its next ack makes a new one.
            pages.settled.remove(found);
            return Arrival::Settled(delivery);
        };
        let Some((_, ending)) = known.endings.pop() else {
            known.twins.push(delivery);
            return Arrival::Running;
        };
        drop(pages);
        Arrival::Ended(self.start(key), delivery, ending)
    }

    /// The job was acked by this subscription, as far as we know.
    pub(super) fn settled(&self, key: Key, subscription: u64, at: Instant) {
        let mut pages = self.pages();
        if pages.settled.len() >= MOST_KEPT {
            pages.settled.pop_front();
        }
        pages.settled.push_back(Settled {
            key,
            at,
            subscription,
        });
    }

    fn pages(&self) -> MutexGuard<'_, Pages<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D> Run<D> {
    /// The job is settled, as far as we know.
    pub(super) fn settled(&self, subscription: u64, now: Instant) {
        self.ledger.settled(self.key, subscription, now);
    }

    /// The delivery that came back last: the older ones can no longer be settled.
    pub(super) fn newest(&self) -> Option<D> {
        let mut pages = self.ledger.pages();
        pages.jobs.get_mut(&self.key)?.twins.pop()
    }

    /// Keeps the ending of a failed settlement, unless there is a twin to settle with it.
    pub(super) fn keep(&self, ending: Ending, now: Instant) -> Option<(D, Ending)> {
        let mut pages = self.ledger.pages();
        let known = pages.jobs.get_mut(&self.key)?;
        if let Some(twin) = known.twins.pop() {
            return Some((twin, ending));
        }
        known.endings.push((now, ending));
        pages.kept.push_back((now, self.key));
        pages.forget_old(now);
        None
    }
}

impl<D> Drop for Run<D> {
    fn drop(&mut self) {
        let twins = self.ledger.pages().leave(self.key);
        // They go back to their queue, and not under the lock.
        drop(twins);
    }
}

impl<D> Pages<D> {
    fn leave(&mut self, key: Key) -> Vec<D> {
        let Entry::Occupied(mut known) = self.jobs.entry(key) else {
            return Vec::new();
        };
        known.get_mut().running -= 1;
        if known.get().running > 0 {
            return Vec::new();
        }
        let twins = mem::take(&mut known.get_mut().twins);
        if known.get().endings.is_empty() {
            known.remove();
        }
        twins
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((since, key)) = self.kept.front().copied()
            && (self.kept.len() > MOST_KEPT || now.duration_since(since) > KEPT_FOR)
        {
            self.kept.pop_front();
            if let Entry::Occupied(mut known) = self.jobs.entry(key) {
                known.get_mut().endings.retain(|(kept, _)| *kept != since);
                if known.get().running == 0 && known.get().endings.is_empty() {
                    known.remove();
                }
            }
        }
    }
}

impl<D> Default for Ledger<D> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<D> Default for Pages<D> {
    fn default() -> Self {
        Self {
            jobs: HashMap::new(),
            kept: VecDeque::new(),
            // All at once: it takes memory as it fills, and is not copied on the way.
            settled: VecDeque::with_capacity(MOST_KEPT),
        }
    }
}

impl<D> Default for Known<D> {
    fn default() -> Self {
        Self {
            running: 0,
            twins: Vec::new(),
            endings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{outcome::Outcome, plan::Rules};

    type Book = Arc<Ledger<&'static str>>;

    fn key(number: u128) -> Key {
        Key {
            job_id: Uuid::from_u128(number),
            attempt: 1,
            deferrals: 0,
            crashes: 0,
            enqueued_at_ms: 0,
            failed_at_ms: None,
        }
    }

    fn lose(ledger: &Book, number: u128, now: Instant) {
        let ending = Ending::new(Outcome::Done, Rules::default());
        assert!(ledger.start(key(number)).keep(ending, now).is_none());
    }

    /// How many of the first `count` keys the ledger still knows the end of.
    fn known(ledger: &Book, count: u128, now: Instant) -> usize {
        let ended = |number| {
            matches!(
                ledger.recognise(key(number), 0, "", now),
                Arrival::Ended(..)
            )
        };
        (0..count).filter(|number| ended(*number)).count()
    }

    fn size(ledger: &Book) -> (usize, usize) {
        let pages = ledger.pages();
        (pages.jobs.len(), pages.kept.len())
    }

    #[test]
    fn what_was_settled_leaves_nothing() {
        let ledger = Book::default();

        drop([ledger.start(key(1)), ledger.start(key(1))]);

        assert_eq!(size(&ledger), (0, 0));
    }

    #[test]
    fn the_newest_endings_are_kept_up_to_the_bound() {
        let (ledger, now) = (Book::default(), Instant::now());

        for number in 0..10_005 {
            lose(&ledger, number, now + Duration::from_nanos(number as u64));
        }

        assert_eq!(size(&ledger), (MOST_KEPT, MOST_KEPT));
        assert_eq!(known(&ledger, 5, now), 0);
        assert_eq!(known(&ledger, 10_005, now), MOST_KEPT);
        assert_eq!(size(&ledger).0, 0);
    }

    #[test]
    fn an_ending_is_kept_for_an_hour() {
        let (ledger, now) = (Book::default(), Instant::now());

        lose(&ledger, 0, now);
        lose(&ledger, 1, now);

        assert_eq!(known(&ledger, 1, now + KEPT_FOR), 1);
        assert_eq!(
            known(&ledger, 2, now + KEPT_FOR + Duration::from_secs(1)),
            0
        );
        assert_eq!(size(&ledger), (0, 0));
    }

    #[test]
    fn an_ending_is_given_out_once() {
        let (ledger, now) = (Book::default(), Instant::now());

        lose(&ledger, 0, now);

        assert_eq!(known(&ledger, 1, now), 1);
        assert_eq!(known(&ledger, 1, now), 0);
    }

    #[test]
    fn the_last_that_were_settled_are_known_for_a_while() {
        let (ledger, now) = (Book::default(), Instant::now());

        for number in 0..10_001 {
            ledger.start(key(number)).settled(0, now);
        }

        let settled = |number, at| {
            matches!(
                ledger.recognise(key(number), 1, "", at),
                Arrival::Settled(_)
            )
        };
        assert!(!settled(0, now), "the oldest is forgotten");
        assert!(settled(1, now) && settled(4, now + SETTLED_FOR));
        assert!(!settled(4, now), "it was found");
        assert!(!settled(5, now + SETTLED_FOR + Duration::from_nanos(1)));
    }

    #[test]
    fn each_of_two_runs_settles_one_twin() {
        let (ledger, now) = (Book::default(), Instant::now());
        let (first, second) = (ledger.start(key(1)), ledger.start(key(1)));

        for twin in ["old", "new"] {
            let arrival = ledger.recognise(key(1), 0, twin, now);
            assert!(matches!(arrival, Arrival::Running));
        }

        assert_eq!(first.newest(), Some("new"));
        drop(first);
        assert_eq!(second.newest(), Some("old"));
    }
}
