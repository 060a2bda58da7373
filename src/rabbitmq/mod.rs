//! [`RabbitMqBackend`]: the contract over lapin.

mod ack_timeout;
mod acks;
mod address;
mod addresses;
#[cfg(feature = "cli")]
pub mod admin;
mod channel;
pub mod codec;
mod connection;
mod consume;
mod declare;
mod declare_ladders;
mod error;
pub mod hold;
mod holds;
mod in_flight;
pub mod ladder;
mod ladders;
mod lane;
mod link;
mod live;
mod message;
mod methods;
mod options;
mod publish;
#[cfg(feature = "queuey-core")]
mod queuey_core;
mod reconnect;
mod settle;
mod store;
mod subscription;
mod survived;
pub mod topology;
mod version;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_lock::OnceCell;
use futures_util::future::BoxFuture;

pub use address::Address;
pub use addresses::Addresses;
pub use consume::RabbitMqDeliveries;
pub use options::{RabbitMqOptions, Tls};
pub use reconnect::{Attempt, BackoffPolicy, Rebuilding, ReconnectPolicy};
pub use settle::RabbitMqDelivery;

use self::{
    declare::Declared, holds::Holds, ladders::Ladders, link::Link, message::Route,
    publish::Publisher, survived::Survived,
};
use crate::{
    Backend, Envelope, Error, QueueConfig, Result, Runtime, SubscriptionWatch, latch::Latch,
    limits::check_name, runtime::client,
};

/// How long the end of open publishes is waited for at a close.
const OPEN_PUBLISHES: Duration = Duration::from_secs(5);

/// Jobs on RabbitMQ. Clones share its connections.
///
/// One connection publishes and declares, a second one, opened with the first consumer, consumes
/// and settles: an alarm of the broker that blocks publishing never holds up an ack. Each comes
/// back when it is lost, as [`RabbitMqOptions::reconnect`] says; publishes wait for it, and
/// subscriptions go on.
#[derive(Clone)]
pub struct RabbitMqBackend(Arc<Inner>);

struct Inner {
    addresses: Addresses,
    options: Arc<RabbitMqOptions>,
    publishing: Arc<Link>,
    consuming: OnceCell<Arc<Link>>,
    publisher: Publisher,
    holds: Arc<Holds>,
    ladders: Ladders,
    declared: Arc<Declared>,
    survived: Mutex<Survived>,
    closing: Latch,
}

impl RabbitMqBackend {
    /// Connects with default options to an [`Address`], a URI that is one, or a list of them.
    pub async fn connect<A>(addresses: A) -> Result<Self>
    where
        A: TryInto<Addresses>,
        Error: From<A::Error>,
    {
        Self::with_options(addresses, RabbitMqOptions::default()).await
    }

    /// Connects to an [`Address`], a URI that is one, or a list of them.
    ///
    /// # Errors
    /// Unless [`wait_for_broker`](RabbitMqOptions::wait_for_broker) is on, each address is tried
    /// once: [`Error::Address`], [`Error::TlsNotBuiltIn`], [`Error::AccessRefused`],
    /// [`Error::TimedOut`], or what else went wrong with the last.
    pub async fn with_options<A>(addresses: A, options: RabbitMqOptions) -> Result<Self>
    where
        A: TryInto<Addresses>,
        Error: From<A::Error>,
    {
        Self::start(addresses.try_into()?, options).await
    }

    // Boxed, as all that is rare: compiled once, with this crate, and not again in each program.
    fn start(addresses: Addresses, options: RabbitMqOptions) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let options = Arc::new(options);
            let declared = Arc::new(Declared::new(addresses.clone(), options.clone()));
            let closing = Latch::new();
            let publishing = Link::new(
                "publishing",
                addresses.clone(),
                options.clone(),
                Some(declared.clone()),
                closing.clone(),
            );
            let first = match options.wait_for_broker {
                true => None,
                false => Some(publishing.dial().await?),
            };
            publishing.start(first);
            let publisher = Publisher::new(publishing.clone(), &options);
            let backend = Self(Arc::new(Inner {
                holds: Arc::new(Holds::new(publisher.beside())),
                ladders: Ladders::new(publisher.beside()),
                publisher,
                publishing,
                consuming: OnceCell::new(),
                declared,
                survived: Mutex::default(),
                closing,
                addresses,
                options,
            }));
            let addresses = &backend.0.addresses;
            backend
                .0
                .publishing
                .get("connect to", &addresses.to_string())
                .await?;
            log::info!("connected to {addresses}");
            Ok(backend)
        })
    }

    /// How this backend was configured.
    pub fn options(&self) -> &RabbitMqOptions {
        &self.0.options
    }

    /// Whether every connection opened so far is alive at the moment.
    pub fn is_connected(&self) -> bool {
        let alive = |link: &Arc<Link>| link.current().is_some();
        alive(&self.0.publishing) && self.0.consuming.get().is_none_or(alive)
    }

    /// Whether the broker takes no publishes, for want of memory or disk. It tells those who try.
    pub fn is_blocked(&self) -> bool {
        let live = self.0.publishing.current();
        live.is_some_and(|live| live.blocked().is_some())
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
        self.0.closing.is_raised()
    }

    fn open(&self) -> Result<&Inner> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        Ok(&self.0)
    }

    fn frame_max(&self) -> u32 {
        self.0.publishing.frame_max()
    }

    /// Whether this backend has declared `queue`.
    fn knows(&self, queue: &str) -> bool {
        self.0.declared.kind(queue).is_some()
    }

    /// The link that consumes.
    async fn consuming(&self) -> Result<&Link> {
        let Inner {
            addresses,
            options,
            closing,
            ..
        } = self.open()?;
        let started = self.0.consuming.get_or_try_init(|| async {
            let (addresses, options) = (addresses.clone(), options.clone());
            let link = Link::new("consuming", addresses, options, None, closing.clone());
            let first = match self.0.options.reconnect {
                Some(_) => None,
                None => Some(link.dial().await?),
            };
            link.start(first);
            Ok(link)
        });
        started.await.map(Arc::as_ref)
    }

    /// Waits until both connections are alive.
    async fn connected(&self, queue: &str) -> Result<()> {
        let inner = self.open()?;
        inner.publishing.get("consume", queue).await?;
        self.consuming().await?.get("consume", queue).await?;
        Ok(())
    }

    fn declare_all<'a>(&'a self, queues: &'a [QueueConfig]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let inner = self.open()?;
            let (publishing, options) = (&inner.publishing, &inner.options);
            for queue in queues {
                topology::check_names(queue, &options.dead_suffix, &options.deferred_suffix)?;
            }
            for queue in queues {
                let work = async {
                    loop {
                        let live = publishing.get("declare", &queue.name).await?;
                        match inner.declared.declare(&live, queue).await {
                            Err(Error::Disconnected { .. }) => {
                                publishing.come_again("declare", &queue.name).await?;
                            }
                            answer => return answer,
                        }
                    }
                };
                let declared = inner.publisher.in_time("declare", &queue.name, work);
                declared.await?;
            }
            Ok(())
        })
    }

    fn subscribe<'a>(
        &'a self,
        queue: &'a QueueConfig,
        watch: SubscriptionWatch,
    ) -> BoxFuture<'a, Result<RabbitMqDeliveries>> {
        Box::pin(async move {
            self.open()?;
            check_name(&queue.name)?;
            RabbitMqDeliveries::start(self.clone(), queue.clone(), watch).await
        })
    }

    fn hang_up(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let Inner {
                publishing,
                consuming,
                publisher,
                closing,
                ..
            } = &*self.0;
            let lives =
                [Some(publishing), consuming.get()].map(|link| link.and_then(|it| it.current()));
            closing.raise();
            client().timeout(OPEN_PUBLISHES, publisher.drain()).await;
            for live in lives.iter().flatten().rev() {
                connection::hang_up(live).await;
            }
            Ok(())
        })
    }

    /// Declares `queue` as it was declared before, if it was.
    async fn declare_again(&self, queue: &str) -> Result<()> {
        match self.0.declared.config(queue) {
            Some(queue) => self.declare(std::slice::from_ref(&queue)).await,
            None => Ok(()),
        }
    }
}

impl Drop for Inner {
    /// Nobody is left to close it, so its connections are not kept alive.
    fn drop(&mut self) {
        self.closing.raise();
    }
}

impl Backend for RabbitMqBackend {
    type Delivery = RabbitMqDelivery;
    type Deliveries = RabbitMqDeliveries;

    async fn declare(&self, queues: &[QueueConfig]) -> Result<()> {
        self.declare_all(queues).await
    }

    async fn publish(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        match delay {
            Some(delay) => {
                self.hold(envelope, delay, self.0.options.retry_granularity)
                    .await
            }
            None => {
                let publisher = &self.open()?.publisher;
                let message = || publisher.message(envelope);
                publisher
                    .publish(Route::to(&envelope.queue)?, &message)
                    .await
            }
        }
    }

    async fn defer(&self, envelope: &Envelope, delay: Duration) -> Result<()> {
        self.hold(envelope, delay, self.0.options.deferred_granularity)
            .await
    }

    async fn consume(&self, queue: &QueueConfig) -> Result<RabbitMqDeliveries> {
        let nobody = SubscriptionWatch::new(&queue.name);
        self.subscribe(queue, nobody).await
    }

    async fn consume_watched(
        &self,
        queue: &QueueConfig,
        watch: SubscriptionWatch,
    ) -> Result<RabbitMqDeliveries> {
        self.subscribe(queue, watch).await
    }

    /// Waits some seconds for open publishes, then for the broker's farewell, then ends.
    async fn close(&self) -> Result<()> {
        self.hang_up().await
    }

    fn ack_timeout(&self, queue: &QueueConfig) -> Option<Duration> {
        let live = self.0.consuming.get()?.current()?;
        ack_timeout::limit(queue, live.returns.version())
    }

    fn runtime(&self) -> Runtime {
        self.0.options.runtime.clone().unwrap_or_default()
    }
}

impl fmt::Debug for RabbitMqBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqBackend")
            .field("addresses", &self.0.addresses)
            .field("connected", &self.is_connected())
            .finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
