//! [`Shared`]: all queues, their consumers and the clock behind one lock.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::Duration,
};

use super::{
    MAX_BODY,
    clock::{Clock, Wait},
    consumers::{Consumer, Consumers},
    content::Content,
    declare,
    inspect::Records,
    queue::{QueueState, Taken},
};
use crate::{Error, QueueConfig, Result, limits::longest_delay};

#[derive(Debug)]
pub(super) struct Shared(Mutex<State>);

#[derive(Debug)]
pub(super) struct State {
    pub(super) clock: Clock,
    pub(super) closed: bool,
    pub(super) queues: BTreeMap<String, Queue>,
    consumers: u64,
    /// Who waits for idleness, and when each will look again by itself.
    idlers: Vec<(Waker, Option<Duration>)>,
    /// To be woken once the lock is free.
    woken: Vec<Waker>,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) config: QueueConfig,
    pub(super) jobs: QueueState,
    pub(super) records: Records,
    consumers: Consumers,
}

/// What a consumer finds.
#[derive(Debug)]
pub(super) enum Next {
    Taken(Taken),
    Nothing(Option<Wait>),
    Closed,
}

impl Shared {
    pub(super) fn new(clock: Clock) -> Self {
        Self(Mutex::new(State {
            clock,
            closed: false,
            queues: BTreeMap::new(),
            consumers: 0,
            idlers: Vec::new(),
            woken: Vec::new(),
        }))
    }

    /// Brings the queues up to now, runs `change`, and wakes whom it concerns.
    ///
    /// `change` must drop no waker and no delivery: either may come back for the lock.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut State, Duration) -> T) -> T {
        let mut state = self.lock();
        let now = state.tick();
        let answer = change(&mut state, now);
        state.wake_idlers();
        let woken = std::mem::take(&mut state.woken);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Creates the queues that are not there, or none when one is refused.
    pub(super) fn declare(&mut self, queues: &[QueueConfig]) -> Result<()> {
        self.check_open()?;
        for (index, queue) in queues.iter().enumerate() {
            declare::check_name(&queue.name)?;
            declare::check_kind(queue)?;
            let earlier = queues[..index].iter().find(|it| it.name == queue.name);
            let current = self.queues.get(&queue.name).map(|queue| &queue.config);
            if let Some(current) = current.or(earlier) {
                declare::check_same(current, queue)?;
            }
        }
        for queue in queues {
            self.queues
                .entry(queue.name.clone())
                .or_insert_with(|| Queue::new(queue));
        }
        Ok(())
    }

    /// Puts a job on `queue`, now or after `delay`.
    pub(super) fn put(
        &mut self,
        name: &str,
        content: Content,
        priority: u8,
        delay: Option<Duration>,
        now: Duration,
    ) -> Result<()> {
        self.check_open()?;
        let Some(queue) = self.queues.get_mut(name) else {
            return Err(match delay {
                Some(_) => Error::UnknownQueue(name.into()),
                None => Error::Unroutable {
                    queue: name.into(),
                    reply: "NO_ROUTE".into(),
                },
            });
        };
        if content.body.len() > MAX_BODY {
            return Err(Error::PayloadTooLarge {
                queue: name.into(),
                size: content.body.len(),
                limit: MAX_BODY,
            });
        }
        match delay.unwrap_or_default() {
            delay if delay > longest_delay(queue.config.kind) => {
                return Err(Error::DelayTooLong {
                    queue: name.into(),
                    delay,
                    max: longest_delay(queue.config.kind),
                });
            }
            Duration::ZERO => queue.jobs.push(content, priority, now),
            delay => {
                let due = now.saturating_add(delay);
                let sooner = queue.jobs.next_due().is_none_or(|next| due < next);
                queue.jobs.hold(content, priority, due);
                if !sooner {
                    return Ok(());
                }
            }
        }
        queue.consumers.wake(&mut self.woken);
        Ok(())
    }

    pub(super) fn check_open(&self) -> Result<()> {
        if self.closed {
            return Err(Error::Closed);
        }
        Ok(())
    }

    /// Adds a consumer of `queue` and answers its number.
    pub(super) fn subscribe(&mut self, name: &str, prefetch: u16) -> Result<u64> {
        self.check_open()?;
        let Some(queue) = self.queues.get_mut(name) else {
            let reply = format!("NOT_FOUND - no queue '{name}', declare it first");
            return Err(Error::broker("consume", name, reply));
        };
        self.consumers += 1;
        queue.consumers.add(self.consumers, prefetch);
        Ok(self.consumers)
    }

    /// Removes a consumer; what it has in hand stays there.
    pub(super) fn unsubscribe(&mut self, name: &str, consumer: u64) -> Option<Consumer> {
        self.queues.get_mut(name)?.consumers.remove(consumer)
    }

    /// The next job for this consumer; without one, `waker` is kept, and the one before returned.
    pub(super) fn next(
        &mut self,
        name: &str,
        consumer: u64,
        waker: &Waker,
    ) -> (Next, Option<Waker>) {
        let queue = self.queues.get_mut(name).filter(|_| !self.closed);
        let Some(queue) = queue else {
            return (Next::Closed, None);
        };
        let Some(consumer) = queue.consumers.get(consumer) else {
            return (Next::Closed, None);
        };
        let mut wait = None;
        if consumer.has_room() {
            if let Some(taken) = queue.jobs.take() {
                return (Next::Taken(taken), consumer.took());
            }
            let due = queue.jobs.next_due();
            wait = due.and_then(|due| self.clock.wait_until(due));
        }
        (Next::Nothing(wait), consumer.waits(waker))
    }

    /// Forgets a job in hand and returns it.
    pub(super) fn settle(&mut self, name: &str, consumer: u64, taken: Taken) -> Content {
        let Some(queue) = self.queues.get_mut(name) else {
            return taken.into_content();
        };
        queue.consumers.free_slot(consumer, &mut self.woken);
        queue.jobs.settle(taken)
    }

    /// The records of the first of these queues that is declared.
    pub(super) fn records(&mut self, names: &[&str]) -> Option<&mut Records> {
        let name = names.iter().find(|name| self.queues.contains_key(**name))?;
        Some(&mut self.queues.get_mut(*name)?.records)
    }

    /// Puts a job in hand back where it stood.
    pub(super) fn give_back(&mut self, name: &str, consumer: u64, taken: Taken) {
        if let Some(queue) = self.queues.get_mut(name) {
            queue.jobs.give_back(taken);
            queue.consumers.free_slot(consumer, &mut self.woken);
            queue.consumers.wake(&mut self.woken);
        }
    }

    /// Lets time pass; whoever waits for some has less to wait for.
    pub(super) fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        self.tick();
        self.wake_consumers();
        let idlers = self.idlers.drain(..);
        self.woken.extend(idlers.map(|(waker, _)| waker));
    }

    /// Ends all streams.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.wake_consumers();
    }

    fn wake_consumers(&mut self) {
        for queue in self.queues.values_mut() {
            queue.consumers.wake_all(&mut self.woken);
        }
    }

    /// Whether all work is done; if not, `waker` is kept and the answer is how long to wait.
    pub(super) fn idle_or_wait(&mut self, waker: &Waker) -> Result<(), Option<Wait>> {
        if self.is_idle() {
            return Ok(());
        }
        let next = self.next_event();
        match self.idlers.iter_mut().find(|(it, _)| it.will_wake(waker)) {
            Some((_, alarm)) => *alarm = next,
            None => self.idlers.push((waker.clone(), next)),
        }
        Err(next.and_then(|at| self.clock.wait_until(at)))
    }

    fn is_idle(&self) -> bool {
        self.queues.values().all(|queue| {
            let jobs = &queue.jobs;
            let waiting =
                jobs.pending().len() > 0 || (!self.clock.is_manual() && jobs.held().len() > 0);
            jobs.in_hand() == 0 && (self.closed || !waiting)
        })
    }

    fn next_event(&self) -> Option<Duration> {
        let events = self.queues.values().map(|queue| queue.jobs.next_event());
        events.flatten().min()
    }

    fn wake_idlers(&mut self) {
        if self.idlers.is_empty() {
            return;
        }
        let (idle, next) = (self.is_idle(), self.next_event());
        let sooner = |alarm: Option<Duration>| {
            next.is_some_and(|next| alarm.is_none_or(|alarm| next < alarm))
        };
        let woken = self
            .idlers
            .extract_if(.., |(_, alarm)| idle || sooner(*alarm));
        self.woken.extend(woken.map(|(waker, _)| waker));
    }

    /// Brings every queue up to now; after closing, what is held stays held.
    fn tick(&mut self) -> Duration {
        let now = self.clock.now();
        if !self.closed {
            for queue in self.queues.values_mut() {
                if queue.jobs.tick(now) {
                    queue.consumers.wake(&mut self.woken);
                }
            }
        }
        now
    }
}

impl Queue {
    fn new(config: &QueueConfig) -> Self {
        Self {
            config: config.clone(),
            jobs: QueueState::new(declare::ttl(config), config.max_priority.unwrap_or(0)),
            records: Records::default(),
            consumers: Consumers::default(),
        }
    }
}
