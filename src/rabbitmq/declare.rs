//! Declaring: throwaway channels (or connections) for queues, one shared channel for holds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use lapin::{Channel, Connection, ErrorKind, options::QueueDeclareOptions};

use super::{Address, RabbitMqOptions, connection, error::broker, lock, topology::Declaration};
use crate::{Error, Result, runtime::client};

/// Declares `queues` one after another on a channel of their own, which a refusal closes.
pub(super) async fn declare(connection: &Connection, queues: &[Declaration]) -> Result<()> {
    let [first, ..] = queues else {
        return Ok(());
    };
    let channel = open(connection, &first.name).await?;
    for queue in queues {
        declare_on(&channel, queue)
            .await
            .map_err(broker("declare", &queue.name))?;
    }
    Ok(())
}

/// Like [`declare`], on a connection of its own: where queues that are not durable are denied, the
/// broker closes the connection that asks for one.
pub(super) async fn declare_apart(
    address: &Address,
    options: &RabbitMqOptions,
    queues: &[Declaration],
) -> Result<()> {
    let connection = connection::dial(address, options, Arc::default()).await?;
    let declared = declare(&connection, queues).await;
    connection::hang_up(&connection).await;
    declared.map_err(|error| match error {
        Error::Disconnected {
            action,
            subject,
            source,
        } => Error::broker(action, subject, source),
        other => other,
    })
}

async fn open(connection: &Connection, queue: &str) -> Result<Channel> {
    connection
        .create_channel()
        .await
        .map_err(broker("declare", queue))
}

async fn declare_on(channel: &Channel, queue: &Declaration) -> lapin::Result<()> {
    let options = QueueDeclareOptions {
        durable: queue.durable,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.name.as_str().into(), options, queue.arguments.clone())
        .await
        .map(drop)
}

/// A hold of this length outlasts any stall without being kept.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// Declares hold queues before every publish into one.
///
/// Publishes that ask for one queue at the same time share a declare that starts after each of
/// them asked; different queues do not wait for each other.
#[derive(Debug)]
pub(super) struct Holds {
    connection: Arc<Connection>,
    channel: async_lock::Mutex<Option<Channel>>,
    queues: Mutex<HashMap<String, Asked>>,
    /// When the last job of each short hold is due.
    kept: Mutex<HashMap<String, Instant>>,
}

#[derive(Debug, Default)]
struct Asked {
    times: u64,
    declared: Arc<async_lock::Mutex<Option<Declared>>>,
}

/// The last declare of a hold queue: when it was sent, and how many had asked by then.
#[derive(Debug, Clone, Copy)]
struct Declared {
    sent: Instant,
    covers: u64,
}

impl Holds {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            channel: async_lock::Mutex::default(),
            queues: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Renews the lease of `queue` until the job just stored in it is due, and once after.
    ///
    /// A broker that stalls for about a TTL can delete the queue between two passes over its due
    /// jobs; renewed, it would have to stall for almost two. Long holds have that slack anyway.
    pub(super) fn keep(self: &Arc<Self>, queue: Declaration, ttl: Duration) {
        if ttl > LONGEST_KEPT {
            return;
        }
        let due = Instant::now() + ttl;
        if lock(&self.kept).insert(queue.name.clone(), due).is_none() {
            client().run(keep(Arc::downgrade(self), queue, ttl));
        }
    }

    /// Declares `queue`; answers when the declare was sent, from which its lease runs.
    pub(super) async fn declare(&self, queue: &Declaration) -> Result<Instant> {
        let (ticket, slot) = self.ask(&queue.name);
        let sent = self.declare_or_share(queue, ticket, &slot).await;
        self.forget_if_idle(&queue.name, slot);
        sent
    }

    async fn declare_or_share(
        &self,
        queue: &Declaration,
        ticket: u64,
        slot: &async_lock::Mutex<Option<Declared>>,
    ) -> Result<Instant> {
        let mut declared = slot.lock().await;
        if let Some(last) = *declared
            && last.covers >= ticket
        {
            return Ok(last.sent);
        }
        let covers = self.asked(&queue.name).max(ticket);
        let sent = Instant::now();
        self.declare_now(queue).await?;
        *declared = Some(Declared { sent, covers });
        Ok(sent)
    }

    async fn declare_now(&self, queue: &Declaration) -> Result<()> {
        loop {
            let channel = self.channel(&queue.name).await?;
            match declare_on(&channel, queue).await {
                Ok(()) => return Ok(()),
                // Another queue's refusal closed the channel under this declare.
                Err(error)
                    if self.connection.status().connected() && !is_about(&error, &queue.name) => {}
                Err(error) => return Err(broker("declare", &queue.name)(error)),
            }
        }
    }

    async fn channel(&self, queue: &str) -> Result<Channel> {
        let mut slot = self.channel.lock().await;
        match &*slot {
            Some(channel) if channel.status().connected() => Ok(channel.clone()),
            _ => Ok(slot.insert(open(&self.connection, queue).await?).clone()),
        }
    }

    fn ask(&self, queue: &str) -> (u64, Arc<async_lock::Mutex<Option<Declared>>>) {
        let mut queues = lock(&self.queues);
        let asked = match queues.get_mut(queue) {
            Some(asked) => asked,
            None => queues.entry(queue.into()).or_default(),
        };
        asked.times += 1;
        (asked.times, asked.declared.clone())
    }

    fn asked(&self, queue: &str) -> u64 {
        lock(&self.queues).get(queue).map_or(0, |asked| asked.times)
    }

    fn forget_if_idle(&self, queue: &str, slot: Arc<async_lock::Mutex<Option<Declared>>>) {
        let mut queues = lock(&self.queues);
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
        let renewed = holds.declare(&queue).await;
        let mut kept = lock(&holds.kept);
        let over = kept
            .get(&queue.name)
            .is_none_or(|due| *due < Instant::now());
        if over || renewed.is_err() {
            kept.remove(&queue.name);
            return;
        }
    }
}

fn is_about(error: &lapin::Error, queue: &str) -> bool {
    match error.kind() {
        ErrorKind::ProtocolError(answer) => answer
            .get_message()
            .as_str()
            .contains(&format!("'{queue}'")),
        _ => false,
    }
}
