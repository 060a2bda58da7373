//! [`MemoryBackend`]: queues in this process, behaving as those of the broker do.

mod clock;
mod consume;
mod consumers;
mod content;
mod declare;
mod inspect;
mod queue;
mod settle;
mod state;

use std::{fmt, sync::Arc, time::Duration};

use self::{clock::Clock, state::Shared};
pub use self::{
    consume::MemoryDeliveries,
    inspect::{AckKind, MemoryCounts},
    settle::MemoryDelivery,
};
use crate::{Backend, Envelope, QueueConfig, Result, Runtime};

/// The largest body a broker takes unless told otherwise, in bytes.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// Queues in this process: for programs without a broker, and for tests.
///
/// Behaves as the RabbitMQ backend does: jobs are serialized and parsed, delayed, ordered by
/// priority, redelivered and dead-lettered, and refused where a broker would. Clones share the
/// queues. Nothing outlives the process, and of what is settled or dead-lettered each queue keeps
/// the last 1,000 only.
///
/// Of quorum queues it has neither the delivery limit nor the whole seconds of waits nor the
/// shorter names (199 bytes instead of 235), and it waits for an ack for ever, whatever the
/// [`consumer_timeout`](QueueConfig::consumer_timeout).
///
/// ```
/// # use std::time::Duration;
/// # use queuey_rabbitmq::{Backend, Envelope, MemoryBackend, QueueConfig};
/// # futures_lite::future::block_on(async {
/// let backend = MemoryBackend::with_manual_clock();
/// backend.declare(&[QueueConfig::new("emails")]).await?;
/// let envelope = Envelope::raw("greet", "emails", Default::default());
/// backend.publish(&envelope, Some(Duration::from_secs(60))).await?;
/// backend.advance(Duration::from_secs(60));
/// assert_eq!(backend.pending("emails"), [envelope]);
/// # Ok::<_, queuey_rabbitmq::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryBackend {
    shared: Arc<Shared>,
}

impl MemoryBackend {
    /// On [`Runtime::default`].
    pub fn new() -> Self {
        Self::with_runtime(Runtime::default())
    }

    /// Whose delays are timed by `runtime`, by tokio's paused clock too.
    pub fn with_runtime(runtime: Runtime) -> Self {
        Self::with_clock(Clock::running(runtime))
    }

    /// Whose time stands still but for [`advance`](Self::advance); needs no runtime.
    pub fn with_manual_clock() -> Self {
        Self::with_clock(Clock::manual())
    }

    fn with_clock(clock: Clock) -> Self {
        Self {
            shared: Arc::new(Shared::new(clock)),
        }
    }

    /// Lets `by` pass at once: what falls due meanwhile is on its queue on return, in due order.
    ///
    /// A clock that runs jumps ahead.
    pub fn advance(&self, by: Duration) {
        self.shared.update(|state, _| state.advance(by));
    }

    /// Puts any bytes on `queue`, as a foreign publisher might.
    pub fn publish_raw(&self, queue: &str, body: impl Into<Vec<u8>>) -> Result<()> {
        let content = body.into().into();
        self.shared
            .update(|state, now| state.put(queue, content, 0, None, now))
    }

    fn put(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        let content = envelope.into();
        self.shared
            .update(|state, now| state.put(&envelope.queue, content, envelope.priority, delay, now))
    }
}

impl Backend for MemoryBackend {
    type Delivery = MemoryDelivery;
    type Deliveries = MemoryDeliveries;

    async fn declare(&self, queues: &[QueueConfig]) -> Result<()> {
        self.shared.update(|state, _| state.declare(queues))
    }

    async fn publish(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        self.put(envelope, delay)
    }

    async fn defer(&self, envelope: &Envelope, delay: Duration) -> Result<()> {
        self.put(envelope, Some(delay))
    }

    async fn consume(&self, queue: &QueueConfig) -> Result<MemoryDeliveries> {
        let consumer = self
            .shared
            .update(|state, _| state.subscribe(&queue.name, queue.prefetch))?;
        let shared = Arc::clone(&self.shared);
        Ok(MemoryDeliveries::new(shared, &queue.name, consumer))
    }

    async fn close(&self) -> Result<()> {
        self.shared.update(|state, _| state.close());
        Ok(())
    }

    fn runtime(&self) -> Runtime {
        self.shared
            .update(|state, _| state.clock.runtime())
            .unwrap_or_default()
    }
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackend")
            .field("queues", &self.queue_names())
            .field("closed", &self.is_closed())
            .finish()
    }
}
