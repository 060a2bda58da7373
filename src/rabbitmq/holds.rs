//! [`Holds`]: stores jobs in hold queues, each declared just before, so that none is lost.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;

use super::{
    channel::OpenChannel,
    declare::is_about_another,
    hold,
    lane::Lane,
    lock,
    message::Route,
    methods::declare_queue,
    publish::Publisher,
    store::DELAY,
    topology::{self, Declaration},
};
use crate::{Envelope, Error, Result, runtime::client};

/// A hold of this length outlasts any stall without being kept.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// Where jobs come in numbers, a declare waits so long for others to share it: it costs the broker
/// as much as a few jobs do.
const LINGER: Duration = Duration::from_millis(1);

/// Stores jobs in hold queues.
///
/// Publishes that ask for one queue at the same time share a declare that starts after each of
/// them asked; different queues do not wait for each other.
#[derive(Debug)]
pub(super) struct Holds {
    publisher: Publisher,
    channel: async_lock::Mutex<Option<Arc<OpenChannel>>>,
    asked: Mutex<HashMap<String, Asked>>,
    kept: Mutex<HashMap<String, Kept>>,
    /// From declare to confirm, at the last publish.
    round_trip: Mutex<Duration>,
}

#[derive(Debug, Default)]
struct Asked {
    times: u64,
    declared: Arc<Slot>,
}

type Slot = async_lock::Mutex<Option<Declared>>;

/// The last declare of a hold queue.
#[derive(Debug, Clone)]
struct Declared {
    /// When it was sent; the lease runs from there.
    sent: Instant,
    /// How many had asked by then.
    covers: u64,
    /// Where to publish behind it.
    lane: Arc<Lane>,
    /// Whether the broker has said yes.
    answered: bool,
}

/// A short hold whose lease is renewed.
#[derive(Debug)]
struct Kept {
    /// When its last job is due.
    due: Instant,
    /// Whether several shared its last declare.
    shared: bool,
}

impl Holds {
    pub(super) fn new(publisher: Publisher) -> Self {
        Self {
            publisher,
            channel: async_lock::Mutex::default(),
            asked: Mutex::default(),
            kept: Mutex::default(),
            round_trip: Mutex::default(),
        }
    }

    /// Stores `envelope` where it waits for `ttl` milliseconds and then returns to its queue.
    ///
    /// The broker deletes a hold queue, with the jobs in it, when its lease ends. So a confirm
    /// counts only well within the lease of the declare before it; otherwise the job is stored
    /// once more, in a hold that outlasts the link. Twice is possible, never is not.
    pub(super) fn store<'a>(
        self: &'a Arc<Self>,
        envelope: &'a Envelope,
        suffix: &'a str,
        durable: bool,
        mut ttl: u64,
    ) -> BoxFuture<'a, Result<()>> {
        let stored = async move {
            loop {
                ttl = hold::ttl_for_link(ttl, *lock(&self.round_trip));
                let queue = topology::hold_queue(&envelope.queue, durable, suffix, ttl);
                match self.try_to_store(envelope, &queue, ttl).await {
                    Ok(true) => {
                        self.keep(queue, Duration::from_millis(ttl));
                        return Ok(());
                    }
                    Ok(false) => {}
                    Err(Error::Disconnected { .. }) => {
                        let link = &self.publisher.link;
                        link.come_again(DELAY, &envelope.queue).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        Box::pin(self.publisher.in_time(DELAY, &envelope.queue, stored))
    }

    /// Whether `envelope` is stored for sure.
    async fn try_to_store(
        &self,
        envelope: &Envelope,
        queue: &Declaration,
        ttl: u64,
    ) -> Result<bool> {
        let declared = self.declare(queue).await?;
        let lease = hold::lease(ttl);
        if declared.sent.elapsed() < lease {
            let publisher = &self.publisher;
            let (place, message) = (publisher.place().await, publisher.message(envelope));
            let published = publisher
                .send(declared.lane, place, Route::to(&queue.name)?, message)?
                .await;
            match published {
                Ok(()) => {}
                Err(Error::Unroutable { .. }) if declared.sent.elapsed() >= lease => {}
                // Somebody's declare was refused. Whose, the next answer tells.
                Err(Error::Precondition { .. } | Error::Disconnected { .. })
                    if !declared.answered =>
                {
                    lock(&self.kept).remove(&queue.name);
                    return Ok(false);
                }
                Err(error) if is_about_another(&error, &queue.name) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let took = declared.sent.elapsed();
        *lock(&self.round_trip) = took;
        if took >= lease {
            let name = &queue.name;
            log::warn!("holding a job in `{name}` took {took:?}, too long to be sure of it");
        }
        Ok(took < lease)
    }

    /// Renews the lease of `queue` until the job just stored in it is due, and once after.
    ///
    /// A broker that stalls for about a TTL can delete the queue between two passes over its due
    /// jobs; renewed, it would have to stall for almost two. Long holds have that slack anyway.
    fn keep(self: &Arc<Self>, queue: Declaration, ttl: Duration) {
        if ttl > LONGEST_KEPT {
            return;
        }
        let due = Instant::now() + ttl;
        let mut all = lock(&self.kept);
        if let Some(kept) = all.get_mut(&queue.name) {
            kept.due = due;
            return;
        }
        all.insert(queue.name.clone(), Kept { due, shared: false });
        client().run(keep(Arc::downgrade(self), queue, ttl));
    }

    /// Declares `queue`, or shares a declare that starts from now on.
    async fn declare(&self, queue: &Declaration) -> Result<Declared> {
        let (ticket, slot) = self.ask(&queue.name);
        let declared = self.declare_or_share(queue, ticket, &slot).await;
        self.forget_if_idle(&queue.name, slot);
        declared
    }

    async fn declare_or_share(
        &self,
        queue: &Declaration,
        ticket: u64,
        slot: &Slot,
    ) -> Result<Declared> {
        let mut declared = slot.lock().await;
        if let Some(last) = &*declared
            && last.covers >= ticket
        {
            return Ok(last.clone());
        }
        // The broker said yes not long ago: the publish can follow without waiting for it.
        let shared = lock(&self.kept).get(&queue.name).map(|kept| kept.shared);
        let answered = shared.is_none();
        if shared == Some(true) {
            client().sleep(LINGER).await;
        }
        let covers = self.asked(&queue.name).max(ticket);
        if let Some(kept) = lock(&self.kept).get_mut(&queue.name) {
            let before = declared.as_ref().map_or(0, |last| last.covers);
            kept.shared = covers - before > 1;
        }
        let sent = Instant::now();
        let lane = if answered {
            self.declare_now(queue).await?;
            self.publisher.lane(&queue.name).await?
        } else {
            self.publisher.declare_ahead(queue).await?
        };
        Ok(declared
            .insert(Declared {
                sent,
                covers,
                lane,
                answered,
            })
            .clone())
    }

    fn declare_now<'a>(&'a self, queue: &'a Declaration) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            loop {
                let channel = self.channel(&queue.name).await?;
                let declared = declare_queue(&channel, queue);
                match channel.live.ask("declare", &queue.name, declared).await {
                    // Another queue's refusal closed the channel under this declare.
                    Err(error) if is_about_another(&error, &queue.name) => {}
                    Err(Error::Disconnected { .. }) if channel.live.is_connected() => {}
                    answer => return answer,
                }
            }
        })
    }

    async fn channel(&self, queue: &str) -> Result<Arc<OpenChannel>> {
        let mut slot = self.channel.lock().await;
        if let Some(channel) = &*slot
            && channel.carries()
        {
            return Ok(channel.clone());
        }
        let live = self.publisher.link.get("declare", queue).await?;
        let channel = OpenChannel::new(live, "declare", queue).await?;
        Ok(slot.insert(channel).clone())
    }

    fn ask(&self, queue: &str) -> (u64, Arc<Slot>) {
        let mut queues = lock(&self.asked);
        let asked = match queues.get_mut(queue) {
            Some(asked) => asked,
            None => queues.entry(queue.into()).or_default(),
        };
        asked.times += 1;
        (asked.times, asked.declared.clone())
    }

    fn asked(&self, queue: &str) -> u64 {
        lock(&self.asked).get(queue).map_or(0, |asked| asked.times)
    }

    fn forget_if_idle(&self, queue: &str, slot: Arc<Slot>) {
        let mut queues = lock(&self.asked);
        // The map's and ours: nobody else waits for this queue.
        if Arc::strong_count(&slot) == 2 {
            queues.remove(queue);
        }
    }
}

async fn keep(holds: Weak<Holds>, queue: Declaration, ttl: Duration) {
    loop {
        client().sleep(ttl * 3 / 4).await;
        let Some(holds) = holds.upgrade() else {
            return;
        };
        let renewed = holds.declare_now(&queue).await;
        let mut kept = lock(&holds.kept);
        let over = kept
            .get(&queue.name)
            .is_none_or(|hold| hold.due < Instant::now());
        if over || renewed.is_err() {
            kept.remove(&queue.name);
            return;
        }
    }
}
