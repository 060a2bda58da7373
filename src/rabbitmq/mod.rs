//! [`RabbitMqBackend`]: the contract over lapin.

mod acks;
mod address;
pub mod codec;
mod connection;
mod consume;
mod declare;
mod error;
pub mod hold;
mod holds;
mod options;
mod publish;
#[cfg(feature = "queuey-core")]
mod queuey_core;
mod settle;
pub mod topology;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_lock::OnceCell;
use lapin::{BasicProperties, Connection};

pub use address::Address;
pub use consume::RabbitMqDeliveries;
pub use options::{RabbitMqOptions, Tls};
pub use settle::RabbitMqDelivery;

use self::{holds::Holds, publish::Publisher};
use crate::{
    Backend, Envelope, Error, QueueConfig, Result, Runtime, limits::check_name, runtime::Returns,
};

/// Jobs on RabbitMQ. Clones share its connections.
///
/// One connection publishes and declares, a second one, opened with the first consumer, consumes
/// and settles: an alarm of the broker that blocks publishing never holds up an ack.
#[derive(Clone)]
pub struct RabbitMqBackend(Arc<Inner>);

struct Inner {
    address: Address,
    options: RabbitMqOptions,
    publishing: Arc<Connection>,
    consuming: OnceCell<Connection>,
    publisher: Publisher,
    holds: Arc<Holds>,
    /// What this backend has declared, and whether it is durable.
    declared: Mutex<HashMap<String, bool>>,
    closed: AtomicBool,
}

impl RabbitMqBackend {
    /// Connects with default options to an [`Address`], or to a URI that is one.
    pub async fn connect<A>(address: A) -> Result<Self>
    where
        A: TryInto<Address>,
        Error: From<A::Error>,
    {
        Self::with_options(address, RabbitMqOptions::default()).await
    }

    /// Connects to an [`Address`], or to a URI that is one.
    ///
    /// # Errors
    /// The first dial is tried once: [`Error::Address`], [`Error::TlsNotBuiltIn`],
    /// [`Error::AccessRefused`], [`Error::TimedOut`], or what else went wrong.
    pub async fn with_options<A>(address: A, options: RabbitMqOptions) -> Result<Self>
    where
        A: TryInto<Address>,
        Error: From<A::Error>,
    {
        let address = address.try_into()?;
        let returns = Arc::<Returns>::default();
        let publishing = connection::dial(&address, &options, returns.clone()).await?;
        let publishing = Arc::new(publishing);
        log::info!("connected to {address}");
        Ok(Self(Arc::new(Inner {
            publisher: Publisher::new(publishing.clone(), returns.clone()),
            holds: Arc::new(Holds::new(publishing.clone(), returns)),
            publishing,
            consuming: OnceCell::new(),
            declared: Mutex::default(),
            closed: AtomicBool::new(false),
            address,
            options,
        })))
    }

    /// How this backend was configured.
    pub fn options(&self) -> &RabbitMqOptions {
        &self.0.options
    }

    /// Whether every connection opened so far is alive.
    pub fn is_connected(&self) -> bool {
        let alive = |connection: &Connection| connection.status().connected();
        alive(&self.0.publishing) && self.0.consuming.get().is_none_or(alive)
    }

    /// The name of the dead-letter queue of `queue`.
    pub fn dead_queue_name(&self, queue: &str) -> String {
        topology::dead_queue_name(queue, &self.0.options.dead_suffix)
    }

    /// The name of the hold queue of `queue` for waits of `ttl_ms`.
    pub fn hold_queue_name(&self, queue: &str, ttl_ms: u64) -> String {
        topology::hold_queue_name(queue, &self.0.options.deferred_suffix, ttl_ms)
    }

    fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    fn open(&self) -> Result<&Inner> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        Ok(&self.0)
    }

    fn frame_max(&self) -> u32 {
        self.0.publishing.configuration().frame_max()
    }

    /// Whether `queue` is durable, if this backend has declared it.
    fn durability(&self, queue: &str) -> Option<bool> {
        lock(&self.0.declared).get(queue).copied()
    }

    async fn publish_dead(
        &self,
        queue: &str,
        properties: BasicProperties,
        body: Vec<u8>,
    ) -> Result<()> {
        let dead = self.dead_queue_name(queue);
        self.open()?
            .publisher
            .publish(&dead, properties, body)
            .await
    }

    /// Stores `envelope` where it waits for `delay` and then returns to its queue.
    async fn hold(
        &self,
        envelope: &Envelope,
        delay: Duration,
        granularity: Duration,
    ) -> Result<()> {
        let Inner { options, holds, .. } = self.open()?;
        let queue = &envelope.queue;
        let durable = self
            .durability(queue)
            .ok_or_else(|| Error::UnknownQueue(queue.clone()))?;
        let ttl = hold::ttl_ms(queue, delay, granularity)?;
        holds
            .store(envelope, &options.deferred_suffix, durable, ttl)
            .await
    }
}

impl Backend for RabbitMqBackend {
    type Delivery = RabbitMqDelivery;
    type Deliveries = RabbitMqDeliveries;

    async fn declare(&self, queues: &[QueueConfig]) -> Result<()> {
        let Inner {
            address,
            options,
            publishing,
            declared,
            ..
        } = self.open()?;
        for queue in queues {
            topology::check_names(queue, &options.dead_suffix, &options.deferred_suffix)?;
        }
        for queue in queues {
            let mut declarations = vec![topology::main_queue(queue)];
            if options.declare_dead_letter_queues {
                declarations.push(topology::dead_queue(queue, &options.dead_suffix));
            }
            if queue.durable {
                declare::declare(publishing, &declarations).await?;
            } else {
                declare::declare_apart(address, options, &declarations).await?;
            }
            lock(declared).insert(queue.name.clone(), queue.durable);
        }
        Ok(())
    }

    async fn publish(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        match delay {
            Some(delay) => {
                self.hold(envelope, delay, self.0.options.retry_granularity)
                    .await
            }
            None => {
                let (properties, body) = (codec::properties(envelope), envelope.to_bytes());
                self.open()?
                    .publisher
                    .publish(&envelope.queue, properties, body)
                    .await
            }
        }
    }

    async fn defer(&self, envelope: &Envelope, delay: Duration) -> Result<()> {
        self.hold(envelope, delay, self.0.options.deferred_granularity)
            .await
    }

    async fn consume(&self, queue: &QueueConfig) -> Result<RabbitMqDeliveries> {
        let Inner {
            address,
            options,
            consuming,
            ..
        } = self.open()?;
        check_name(&queue.name)?;
        let connection = consuming
            .get_or_try_init(|| connection::dial(address, options, Arc::default()))
            .await?;
        RabbitMqDeliveries::start(connection, queue, self.clone()).await
    }

    async fn close(&self) -> Result<()> {
        self.0.closed.store(true, Ordering::Release);
        if let Some(consuming) = self.0.consuming.get() {
            connection::hang_up(consuming).await;
        }
        connection::hang_up(&self.0.publishing).await;
        Ok(())
    }

    fn runtime(&self) -> Runtime {
        self.0.options.runtime.clone().unwrap_or_default()
    }
}

impl fmt::Debug for RabbitMqBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqBackend")
            .field("address", &self.0.address)
            .field("connected", &self.is_connected())
            .finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
