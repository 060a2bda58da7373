//! [`Peer`]: either library behind the published trait.

use std::{sync::Arc, time::Duration};

use futures_lite::{StreamExt, future};
use queuey::{Backend, Delivery, DeliveryStream, Envelope, Error, QueueConfig};
use queuey_rabbitmq::{Chain, RabbitMqBackend, RabbitMqOptions};

use crate::support::{Broker, pause, until, within};

pub const SECOND: Duration = Duration::from_secs(1);
/// How long a job that must not arrive is waited for.
const SILENCE: Duration = Duration::from_millis(300);

/// Whose backend is under test, and the broker it is on.
#[derive(Clone)]
pub struct Peer {
    pub library: Library,
    pub broker: Broker,
}

#[derive(Clone, Copy)]
pub enum Library {
    Published,
    Ours,
}

/// What both libraries can be told.
pub struct Options {
    pub retry_granularity: Duration,
    pub deferred_granularity: Duration,
    pub dead_letter_queues: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            retry_granularity: SECOND,
            deferred_granularity: SECOND,
            dead_letter_queues: true,
        }
    }
}

impl Library {
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Ours => "ours",
        }
    }
}

impl Peer {
    pub async fn backend(&self) -> Arc<dyn Backend> {
        self.backend_with(Options::default()).await
    }

    pub async fn backend_with(&self, options: Options) -> Arc<dyn Backend> {
        let Options {
            retry_granularity,
            deferred_granularity,
            dead_letter_queues,
        } = options;
        let url = &self.broker.url;
        match self.library {
            Library::Published => {
                let options = queuey::RabbitMqOptions::default()
                    .retry_granularity(retry_granularity)
                    .deferred_granularity(deferred_granularity)
                    .declare_dead_letter_queues(dead_letter_queues);
                let backend = queuey::RabbitMqBackend::with_options(url, options).await;
                Arc::new(backend.unwrap())
            }
            Library::Ours => {
                let options = RabbitMqOptions::new()
                    .retry_granularity(retry_granularity)
                    .deferred_granularity(deferred_granularity)
                    .declare_dead_letter_queues(dead_letter_queues);
                let backend = RabbitMqBackend::with_options(url, options).await;
                Arc::new(backend.unwrap())
            }
        }
    }

    /// A queue of the test's own, not declared yet; removed after it.
    pub fn queue(&self) -> QueueConfig {
        QueueConfig::new(self.broker.name())
    }

    /// A backend, and a queue it has declared.
    pub async fn declared(&self) -> (Arc<dyn Backend>, QueueConfig) {
        self.declared_with(Options::default()).await
    }

    pub async fn declared_with(&self, options: Options) -> (Arc<dyn Backend>, QueueConfig) {
        let (backend, queue) = (self.backend_with(options).await, self.queue());
        backend.declare(std::slice::from_ref(&queue)).await.unwrap();
        (backend, queue)
    }

    pub async fn until_ready(&self, queue: &str, count: u32) {
        until(&format!("{count} messages on {queue}"), async || {
            self.broker.ready(queue).await == Some(count)
        })
        .await;
    }

    /// Waits for a dead letter that the subscription itself writes, and for what follows it.
    pub async fn until_set_aside(&self, deliveries: &mut DeliveryStream, queue: &QueueConfig) {
        let dead = format!("{}.dead", queue.name);
        let arrived = async { panic!("{:?}", deliveries.next().await.map(|_| "a delivery")) };
        future::or(arrived, self.until_ready(&dead, 1)).await;
        nothing(deliveries).await;
    }

    /// Ends the subscription and the backend, and waits for what then lies on the queue.
    pub async fn end(
        &self,
        deliveries: DeliveryStream,
        backend: Arc<dyn Backend>,
        queue: &QueueConfig,
        left: u32,
    ) {
        drop(deliveries);
        backend.close().await.unwrap();
        self.until_ready(&queue.name, left).await;
    }
}

pub fn envelope(queue: &QueueConfig, number: u64) -> Envelope {
    Envelope::raw("peers::Number", &queue.name, serde_json::json!(number))
}

/// The next delivery.
pub async fn next(deliveries: &mut DeliveryStream) -> Box<dyn Delivery> {
    within("a delivery", deliveries.next())
        .await
        .expect("the stream goes on")
        .expect("a delivery")
}

/// The next job, acked.
pub async fn take(deliveries: &mut DeliveryStream) -> Envelope {
    let delivery = next(deliveries).await;
    let envelope = delivery.envelope().clone();
    delivery.ack().await.unwrap();
    envelope
}

/// Fails when a delivery arrives although none should.
pub async fn nothing(deliveries: &mut DeliveryStream) {
    let arrived = async { deliveries.next().await.is_some() };
    let silent = async {
        pause(SILENCE).await;
        false
    };
    assert!(!future::or(arrived, silent).await);
}

/// An error with its sources: the libraries spread the broker's words differently.
pub fn words(error: &Error) -> String {
    Chain(error).to_string()
}
