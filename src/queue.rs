//! [`QueueSet`] and [`QueueConfig`]: which queues there are and how each is declared.

use std::{fmt::Debug, hash::Hash, time::Duration};

use crate::RetryPolicy;

/// The priority levels of a queue that does not say otherwise.
pub const DEFAULT_MAX_PRIORITY: u8 = 10;

/// The queues of an application, one fieldless enum variant each.
///
/// Usually derived with [`Queues`](derive@crate::Queues).
pub trait QueueSet: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    /// Every queue, in declaration order.
    fn all() -> &'static [Self];
    /// The name of the queue on the broker.
    fn name(&self) -> &'static str;
    /// How the queue is declared and consumed.
    fn config(&self) -> QueueConfig;

    /// The queue with exactly this broker name.
    fn from_name(name: &str) -> Option<Self> {
        Self::all()
            .iter()
            .copied()
            .find(|queue| queue.name() == name)
    }
}

/// What the broker keeps a queue in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum QueueKind {
    /// One node, with priorities.
    #[default]
    Classic,
    /// Replicated over the nodes of a cluster, as is its dead-letter queue and every wait; needs
    /// RabbitMQ 4.0 and [`durable`](QueueConfig::durable).
    ///
    /// Waits are whole seconds, up to 8.5 years. From 4.3 on, the 32 levels from 0 to 31 are strict
    /// and any `max_priority` up to there is the level deferred jobs return at; before, there are
    /// two levels, up to 4 and above, taken from by turns. A job that ends 100 consumers, or
    /// outlives `message_ttl`, moves to the dead-letter queue with the broker's reason.
    Quorum,
}

/// How one queue is declared and consumed.
///
/// ```
/// # use queuey_rabbitmq::{QueueConfig, RetryPolicy};
/// let queue = QueueConfig::new("emails").prefetch(50).retry(RetryPolicy::exponential(5));
/// assert_eq!(queue.max_priority, Some(10));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QueueConfig {
    /// The name on the broker.
    pub name: String,
    /// Unsettled deliveries one consumer may hold; 16 by default, 0 is unlimited.
    pub prefetch: u16,
    /// What happens to a failed attempt; no retries by default.
    pub retry: RetryPolicy,
    /// Whether the queue survives a broker restart; `true` by default.
    pub durable: bool,
    /// How long a job may wait on the queue before the broker discards it; for ever by default.
    pub message_ttl: Option<Duration>,
    /// The level deferred jobs return at; 10 by default, `None` without priorities.
    pub max_priority: Option<u8>,
    /// What the broker keeps the queue in.
    pub kind: QueueKind,
    /// How long a job may be with a consumer before the broker takes it back; 30 min by default.
    pub consumer_timeout: Option<Duration>,
}

impl QueueConfig {
    /// The defaults under this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            prefetch: 16,
            retry: RetryPolicy::none(),
            durable: true,
            message_ttl: None,
            max_priority: Some(DEFAULT_MAX_PRIORITY),
            kind: QueueKind::Classic,
            consumer_timeout: None,
        }
    }

    /// Unsettled deliveries one consumer may hold; 0 is unlimited.
    pub fn prefetch(mut self, prefetch: u16) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// What happens to a failed attempt.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Whether the queue survives a broker restart.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// How long a job may wait on the queue before the broker discards it.
    pub fn message_ttl(mut self, ttl: Duration) -> Self {
        self.message_ttl = Some(ttl);
        self
    }

    /// The highest priority level; 0 turns priorities off.
    pub fn max_priority(mut self, levels: u8) -> Self {
        self.max_priority = (levels > 0).then_some(levels);
        self
    }

    /// What the broker keeps the queue in.
    pub fn kind(mut self, kind: QueueKind) -> Self {
        self.kind = kind;
        self
    }

    /// How long a job may be with a consumer, running or waiting for its turn, before the broker
    /// takes it back.
    ///
    /// It is asked for with each subscription and is no argument of the queue, so it may change at
    /// any time. Only quorum queues from RabbitMQ 4.3 on take it like this. Elsewhere a line in the
    /// log says so, and what the operator can set: a policy with `consumer-timeout` from 3.12 to
    /// 4.2, `consumer_timeout` in `rabbitmq.conf` before. Classic queues from 4.3 on, and those of
    /// [`MemoryBackend`](crate::MemoryBackend), wait for ever.
    pub fn consumer_timeout(mut self, timeout: Duration) -> Self {
        self.consumer_timeout = Some(timeout);
        self
    }
}
