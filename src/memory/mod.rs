//! [`MemoryBackend`]: queues in this process, behaving as those of the broker do.

mod clock;
mod consume;
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
use crate::{Backend, Envelope, Error, QueueConfig, QueueKind, Result, Runtime};

/// The longest name AMQP can carry.
const MAX_NAME: usize = 255;

/// Queues in this process: for programs without a broker, and for tests.
///
/// Behaves as the RabbitMQ backend does: jobs are serialized and parsed, delayed, ordered by
/// priority, redelivered and dead-lettered, and refused where a broker would. Clones share the
/// queues. Nothing outlives the process.
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

    /// Whose delays are timed by `runtime`.
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
    pub fn advance(&self, by: Duration) {
        self.shared.update(|state, _| state.clock.advance(by));
        // Every update starts by bringing the queues up to the time.
        self.shared.update(|_, _| ());
    }

    /// Puts any bytes on `queue`, as a foreign publisher might.
    pub fn publish_raw(&self, queue: &str, body: impl Into<Vec<u8>>) -> Result<()> {
        let body = body.into();
        self.shared
            .update(|state, now| state.put(queue, body, 0, None, now))
    }

    fn put(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        let body = envelope.to_bytes();
        self.shared
            .update(|state, now| state.put(&envelope.queue, body, envelope.priority, delay, now))
    }
}

impl Backend for MemoryBackend {
    type Delivery = MemoryDelivery;
    type Deliveries = MemoryDeliveries;

    async fn declare(&self, queues: &[QueueConfig]) -> Result<()> {
        for queue in queues {
            check_name(&queue.name)?;
        }
        self.shared.update(|state, _| {
            state.check_open()?;
            for queue in queues {
                state.declare(queue);
                check_same(&state.queues[&queue.name].config, queue)?;
            }
            Ok(())
        })
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

/// Refuses a name that no hold queue of the broker could be derived from.
fn check_name(queue: &str) -> Result<()> {
    let name = format!("{queue}.deferred.{}", i32::MAX);
    match name.len() {
        ..=MAX_NAME => Ok(()),
        len => Err(Error::NameTooLong {
            name,
            len,
            max: MAX_NAME,
        }),
    }
}

/// Refuses what a broker would answer `PRECONDITION_FAILED` to.
fn check_same(current: &QueueConfig, asked: &QueueConfig) -> Result<()> {
    let pairs = arguments(current).into_iter().zip(arguments(asked));
    for ((argument, current), (_, received)) in pairs {
        if received != current {
            let source = format!(
                "PRECONDITION_FAILED - inequivalent arg '{argument}' for queue '{}': received {received}, current is {current}",
                asked.name
            );
            return Err(Error::Precondition {
                queue: asked.name.clone(),
                argument: argument.into(),
                source: source.into(),
            });
        }
    }
    Ok(())
}

/// What a broker compares when a queue is declared again.
fn arguments(queue: &QueueConfig) -> [(&'static str, String); 4] {
    let classic = queue.kind == QueueKind::Classic;
    let priorities = queue.max_priority.filter(|_| classic);
    [
        ("durable", queue.durable.to_string()),
        ("x-message-ttl", format!("{:?}", queue.message_ttl)),
        ("x-max-priority", format!("{priorities:?}")),
        ("x-queue-type", format!("{:?}", queue.kind).to_lowercase()),
    ]
}
