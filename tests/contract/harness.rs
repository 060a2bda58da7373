//! [`Harness`]: a backend, and what is seen of it from outside.

use queuey_rabbitmq::{
    Backend, Envelope, MemoryBackend, QueueConfig, RabbitMqBackend, codec, lapin::BasicProperties,
};

pub use crate::support::jobs::*;
use crate::support::{Broker, Message, On, until};

pub trait Harness: Clone + 'static {
    type Backend: Backend;

    fn backend(&self) -> &Self::Backend;
    /// A queue of the test's own, not declared yet.
    fn queue(&self) -> QueueConfig;
    /// How many jobs lie on the queue, ready to be handed out.
    async fn ready(&self, queue: &str) -> usize;
    /// Body and reason of the next dead letter.
    async fn dead(&self, queue: &str) -> (Vec<u8>, String);
    /// The next dead letter as a job.
    async fn dead_job(&self, queue: &str) -> Envelope;
    /// Puts bytes on the queue that need not be an envelope.
    async fn publish_raw(&self, queue: &str, body: &[u8]);

    async fn declared(&self) -> QueueConfig {
        self.declared_as(|queue| queue).await
    }

    async fn declared_as(&self, set: impl FnOnce(QueueConfig) -> QueueConfig) -> QueueConfig {
        let queue = set(self.queue());
        self.backend()
            .declare(std::slice::from_ref(&queue))
            .await
            .unwrap();
        queue
    }

    async fn consume(&self, queue: &QueueConfig) -> <Self::Backend as Backend>::Deliveries {
        self.backend().consume(queue).await.unwrap()
    }

    /// Publishes a job with this number as its payload.
    async fn publish(&self, queue: &QueueConfig, number: u64) -> Envelope {
        let envelope = envelope(queue, number);
        self.backend().publish(&envelope, None).await.unwrap();
        envelope
    }

    async fn until_ready(&self, queue: &QueueConfig, count: usize) {
        until(&format!("{count} jobs ready"), async || {
            self.ready(&queue.name).await == count
        })
        .await;
    }
}

#[derive(Clone)]
pub struct MemoryHarness(MemoryBackend);

impl MemoryHarness {
    pub fn new(on: On) -> Self {
        Self(MemoryBackend::with_runtime(on.runtime()))
    }
}

impl Harness for MemoryHarness {
    type Backend = MemoryBackend;

    fn backend(&self) -> &MemoryBackend {
        &self.0
    }

    fn queue(&self) -> QueueConfig {
        QueueConfig::new(queuey_rabbitmq::Uuid::new_v4().to_string())
    }

    async fn ready(&self, queue: &str) -> usize {
        self.0.pending(queue).len()
    }

    async fn dead(&self, queue: &str) -> (Vec<u8>, String) {
        let letter = || {
            let letters = self.0.dead_letters(queue);
            let envelope = letters.first();
            let malformed = self.0.malformed(queue);
            let malformed = malformed
                .first()
                .cloned()
                .map(|body| (body, "malformed envelope".into()));
            envelope
                .map(|(envelope, reason)| (envelope.to_bytes(), reason.clone()))
                .or(malformed)
        };
        until("a dead letter", async || letter().is_some()).await;
        letter().unwrap()
    }

    async fn dead_job(&self, queue: &str) -> Envelope {
        self.dead(queue).await;
        self.0.dead_letters(queue).remove(0).0
    }

    async fn publish_raw(&self, queue: &str, body: &[u8]) {
        self.0.publish_raw(queue, body).unwrap();
    }
}

#[derive(Clone)]
pub struct RabbitMqHarness(Broker, RabbitMqBackend);

impl RabbitMqHarness {
    pub async fn new(broker: Broker) -> Self {
        let backend = broker.backend().await;
        Self(broker, backend)
    }

    async fn dead_letter(&self, queue: &str) -> Message {
        let dead = self.1.dead_queue_name(queue);
        until("a dead letter", async || {
            self.0.ready(&dead).await == Some(1)
        })
        .await;
        self.0.take(&dead).await.unwrap()
    }
}

impl Harness for RabbitMqHarness {
    type Backend = RabbitMqBackend;

    fn backend(&self) -> &RabbitMqBackend {
        &self.1
    }

    fn queue(&self) -> QueueConfig {
        self.0.queue()
    }

    async fn ready(&self, queue: &str) -> usize {
        self.0.ready(queue).await.unwrap_or(0) as usize
    }

    async fn dead(&self, queue: &str) -> (Vec<u8>, String) {
        let message = self.dead_letter(queue).await;
        let reason = message.header("x-death-reason").unwrap();
        (message.body, reason)
    }

    async fn dead_job(&self, queue: &str) -> Envelope {
        let message = self.dead_letter(queue).await;
        codec::envelope(&message.body, &message.properties).unwrap()
    }

    async fn publish_raw(&self, queue: &str, body: &[u8]) {
        self.0
            .publish(queue, body, BasicProperties::default())
            .await;
    }
}
