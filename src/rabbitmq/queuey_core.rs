//! The published `queuey_core::Backend`, so that a queuey application only changes its connect line.
//!
//! A settlement that fails leaves the job unsettled, as that trait demands. Where the failure can
//! never heal, the job stays so until its subscription ends, as on queuey's own backend: given
//! back, it would run again and again. Where it may heal, the job goes back after [`PAUSE`].

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::queuey_core::{DeliveryStream, Result};
use async_trait::async_trait;
use futures_util::StreamExt;

use super::{RabbitMqBackend, RabbitMqDelivery, codec, lock, settle::PAUSE};
use crate::{
    Backend, Chain, Delivery, Envelope, Error, QueueConfig, Settled, Unsettled, runtime::client,
};

#[async_trait]
impl ::queuey_core::Backend for RabbitMqBackend {
    async fn declare(&self, queues: &[::queuey_core::QueueConfig]) -> Result<()> {
        let queues: Vec<_> = queues.iter().map(config).collect();
        Ok(Backend::declare(self, &queues).await?)
    }

    async fn publish(
        &self,
        envelope: &::queuey_core::Envelope,
        delay: Option<Duration>,
    ) -> Result<()> {
        Ok(Backend::publish(self, &ours(envelope)?, delay).await?)
    }

    async fn defer(&self, envelope: &::queuey_core::Envelope, delay: Duration) -> Result<()> {
        Ok(Backend::defer(self, &ours(envelope)?, delay).await?)
    }

    async fn consume(&self, queue: &::queuey_core::QueueConfig) -> Result<DeliveryStream> {
        let deliveries = Backend::consume(self, &config(queue)).await?;
        let stuck = Stuck::default();
        Ok(deliveries
            .filter_map(move |delivery| deliver(delivery, stuck.clone()))
            .boxed())
    }

    async fn close(&self) -> Result<()> {
        Ok(Backend::close(self).await?)
    }
}

impl From<Error> for ::queuey_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Serialize { source, .. } => Self::Serde(source),
            Error::UnknownQueue(queue) => Self::UnknownQueue(queue),
            Error::ConsumerStopped(queue) => Self::ConsumerStopped(queue),
            Error::DuplicateHandler(job_type) => Self::DuplicateHandler(job_type),
            Error::Closed => Self::ShutDown,
            error => Self::backend(error),
        }
    }
}

/// A delivery under the published trait.
struct Boxed {
    envelope: ::queuey_core::Envelope,
    delivery: RabbitMqDelivery,
    stuck: Stuck,
}

#[async_trait]
impl ::queuey_core::Delivery for Boxed {
    fn envelope(&self) -> &::queuey_core::Envelope {
        &self.envelope
    }

    async fn ack(self: Box<Self>) -> Result<()> {
        self.stuck.keep(self.delivery.ack().await)
    }

    async fn dead_letter(self: Box<Self>, reason: &str) -> Result<()> {
        self.stuck.keep(self.delivery.dead_letter(reason).await)
    }

    async fn retry(self: Box<Self>, next: ::queuey_core::Envelope, delay: Duration) -> Result<()> {
        let next = self.successor(&next)?;
        self.stuck.keep(self.delivery.retry(&next, delay).await)
    }

    async fn defer(self: Box<Self>, next: ::queuey_core::Envelope, delay: Duration) -> Result<()> {
        let next = self.successor(&next)?;
        self.stuck.keep(self.delivery.defer(&next, delay).await)
    }
}

impl Boxed {
    /// `next` with what is known of earlier failures, which their envelope does not hold.
    fn successor(&self, next: &::queuey_core::Envelope) -> Result<Envelope> {
        let mut next = ours(next)?;
        next.failure.clone_from(&self.delivery.envelope().failure);
        Ok(next)
    }
}

/// The jobs of one subscription that cannot be settled.
#[derive(Clone, Default)]
struct Stuck(Arc<Mutex<Vec<RabbitMqDelivery>>>);

impl Stuck {
    /// Keeps the job of a failed settlement, for as long as it is not to run again.
    fn keep(&self, settled: Settled<RabbitMqDelivery>) -> Result<()> {
        let Err(Unsettled {
            error, delivery, ..
        }) = settled
        else {
            return Ok(());
        };
        match delivery {
            Some(delivery) if error.is_permanent() => lock(&self.0).push(delivery),
            Some(delivery) => client().run(async {
                client().sleep(PAUSE).await;
                drop(delivery);
            }),
            None => {}
        }
        Err(error.into())
    }
}

/// Turns a delivery into what queuey's worker takes. What our envelope can hold and theirs cannot,
/// such as the number `1e999`, is dead-lettered as any malformed body is.
async fn deliver(
    delivery: crate::Result<RabbitMqDelivery>,
    stuck: Stuck,
) -> Option<Result<Box<dyn ::queuey_core::Delivery>>> {
    let delivery = match delivery {
        Ok(delivery) => delivery,
        Err(error) => return Some(Err(error.into())),
    };
    match theirs(delivery.envelope()) {
        Ok(envelope) => Some(Ok(Box::new(Boxed {
            envelope,
            delivery,
            stuck,
        }))),
        Err(error) => {
            let (id, queue) = (delivery.envelope().job_id, &delivery.envelope().queue);
            log::warn!("job {id} of `{queue}` is not an envelope to queuey, set aside: {error}");
            if let Err(error) = stuck.keep(delivery.dead_letter(codec::MALFORMED).await) {
                log::error!("job {id} is not set aside: {}", Chain(&error));
            }
            None
        }
    }
}

// Both libraries define their envelope by the JSON it travels as.

fn ours(envelope: &::queuey_core::Envelope) -> Result<Envelope> {
    Ok(Envelope::from_bytes(&envelope.to_bytes()?)?)
}

fn theirs(envelope: &Envelope) -> Result<::queuey_core::Envelope> {
    ::queuey_core::Envelope::from_bytes(&envelope.to_bytes())
}

/// Without the retry policy, which is the worker's own affair.
fn config(queue: &::queuey_core::QueueConfig) -> QueueConfig {
    let config = QueueConfig::new(&queue.name)
        .prefetch(queue.prefetch)
        .durable(queue.durable)
        .max_priority(queue.max_priority.unwrap_or(0));
    match queue.message_ttl {
        Some(ttl) => config.message_ttl(ttl),
        None => config,
    }
}
