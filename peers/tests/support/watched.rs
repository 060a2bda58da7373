//! [`Watched`]: any published backend, counting what has been settled on it.
//!
//! The published worker cannot settle on its own backend what still runs at a shutdown: its stream
//! takes the channel with it. So its tests stop it only when a settlement is through.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::StreamExt;
use queuey::{Backend, Delivery, DeliveryStream, Envelope, QueueConfig, Result};

pub struct Watched<B> {
    backend: Arc<B>,
    settled: Settled,
}

#[derive(Clone, Default)]
struct Settled(Arc<AtomicUsize>);

impl<B> Watched<B> {
    pub fn new(backend: Arc<B>) -> Self {
        Self {
            backend,
            settled: Settled::default(),
        }
    }

    /// How many settlements have succeeded.
    pub fn settled(&self) -> usize {
        self.settled.0.load(Ordering::SeqCst)
    }
}

impl Settled {
    fn count(&self, settled: Result<()>) -> Result<()> {
        settled.inspect(|()| {
            self.0.fetch_add(1, Ordering::SeqCst);
        })
    }
}

#[async_trait]
impl<B: Backend> Backend for Watched<B> {
    async fn declare(&self, queues: &[QueueConfig]) -> Result<()> {
        self.backend.declare(queues).await
    }

    async fn publish(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        self.backend.publish(envelope, delay).await
    }

    async fn defer(&self, envelope: &Envelope, delay: Duration) -> Result<()> {
        self.backend.defer(envelope, delay).await
    }

    async fn consume(&self, queue: &QueueConfig) -> Result<DeliveryStream> {
        let (deliveries, settled) = (self.backend.consume(queue).await?, self.settled.clone());
        let watched = deliveries.map(move |delivery| {
            let settled = settled.clone();
            delivery.map(|delivery| Box::new(InHand(delivery, settled)) as Box<dyn Delivery>)
        });
        Ok(watched.boxed())
    }

    async fn close(&self) -> Result<()> {
        self.backend.close().await
    }
}

struct InHand(Box<dyn Delivery>, Settled);

#[async_trait]
impl Delivery for InHand {
    fn envelope(&self) -> &Envelope {
        self.0.envelope()
    }

    async fn ack(self: Box<Self>) -> Result<()> {
        self.1.count(self.0.ack().await)
    }

    async fn dead_letter(self: Box<Self>, reason: &str) -> Result<()> {
        self.1.count(self.0.dead_letter(reason).await)
    }

    async fn retry(self: Box<Self>, next: Envelope, delay: Duration) -> Result<()> {
        self.1.count(self.0.retry(next, delay).await)
    }

    async fn defer(self: Box<Self>, next: Envelope, delay: Duration) -> Result<()> {
        self.1.count(self.0.defer(next, delay).await)
    }
}
