//! A backend that fails on demand.
#![allow(
    clippy::result_large_err,
    reason = "so is the answer the contract asks for"
)]

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use queuey_rabbitmq::{
    Backend, Delivery, Envelope, Error, Failure, MemoryBackend, MemoryDelivery, QueueConfig,
    Result, Settled, Unsettled,
};

/// A memory backend whose first settlements fail.
#[derive(Clone)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryBackend,
    pub(crate) fault: Fault,
    pub(crate) left: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The delivery comes back with an error that may heal.
    Back,
    /// Nobody knows what became of the delivery.
    Lost,
    /// Settlements are never answered, and neither is a close.
    Silent,
    /// Each subscription fails once it has been empty.
    Stream,
}

impl Faulty {
    /// Of the settlements, the first `times` fail.
    pub(crate) fn new(inner: &MemoryBackend, fault: Fault, times: usize) -> Self {
        Self {
            inner: inner.clone(),
            fault,
            left: Arc::new(AtomicUsize::new(times)),
        }
    }
}

pub(crate) fn gone() -> Error {
    Error::Disconnected {
        action: "use",
        subject: "main".into(),
        source: "cable cut".into(),
    }
}

impl Backend for Faulty {
    type Delivery = FaultyDelivery;
    type Deliveries = BoxStream<'static, Result<FaultyDelivery>>;

    async fn declare(&self, queues: &[QueueConfig]) -> Result<()> {
        self.inner.declare(queues).await
    }

    async fn publish(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        self.inner.publish(envelope, delay).await
    }

    async fn defer(&self, envelope: &Envelope, delay: Duration) -> Result<()> {
        self.inner.defer(envelope, delay).await
    }

    async fn consume(&self, queue: &QueueConfig) -> Result<Self::Deliveries> {
        let inner = self.inner.consume(queue).await?;
        let backend = self.clone();
        let deliveries = inner.map(move |inner| {
            let backend = backend.clone();
            inner.map(|inner| FaultyDelivery { inner, backend })
        });
        Ok(match self.fault {
            Fault::Stream => {
                let backend = self.inner.clone();
                let cut = async move {
                    backend.idle().await;
                    Err(gone())
                };
                stream::select(deliveries, stream::once(cut)).boxed()
            }
            Fault::Back | Fault::Lost | Fault::Silent => deliveries.boxed(),
        })
    }

    async fn close(&self) -> Result<()> {
        if self.fault == Fault::Silent {
            future::pending::<()>().await;
        }
        Err(gone())
    }
}

pub(crate) struct FaultyDelivery {
    inner: MemoryDelivery,
    backend: Faulty,
}

impl FaultyDelivery {
    /// Fails if that is what the backend does now.
    async fn sound(self) -> std::result::Result<MemoryDelivery, Unsettled<Self>> {
        if self.backend.fault == Fault::Silent {
            future::pending::<()>().await;
        }
        let left = &self.backend.left;
        match left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
            Err(_) => Ok(self.inner),
            Ok(_) if self.backend.fault == Fault::Back => Err(Unsettled::back(self, gone())),
            Ok(_) => Err(Unsettled::lost(gone())),
        }
    }
}

impl Delivery for FaultyDelivery {
    fn envelope(&self) -> &Envelope {
        self.inner.envelope()
    }

    fn redelivered(&self) -> bool {
        self.inner.redelivered()
    }

    async fn ack(self) -> Settled<Self> {
        sunk(self.sound().await?.ack().await)
    }

    async fn retry(self, next: &Envelope, delay: Duration) -> Settled<Self> {
        sunk(self.sound().await?.retry(next, delay).await)
    }

    async fn defer(self, next: &Envelope, delay: Duration) -> Settled<Self> {
        sunk(self.sound().await?.defer(next, delay).await)
    }

    async fn dead_letter(self, reason: &str) -> Settled<Self> {
        sunk(self.sound().await?.dead_letter(reason).await)
    }

    async fn dead_letter_with(self, failure: &Failure, reason: &str) -> Settled<Self> {
        sunk(self.sound().await?.dead_letter_with(failure, reason).await)
    }

    async fn release(self) -> Settled<Self> {
        sunk(self.inner.release().await)
    }
}

fn sunk(settled: Settled<MemoryDelivery>) -> Settled<FaultyDelivery> {
    settled.map_err(|unsettled| Unsettled::lost(unsettled.error))
}
