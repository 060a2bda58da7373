//! [`RabbitMqDeliveries`]: one subscription, on a channel of its own.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_lite::StreamExt;
use lapin::{
    Channel, Connection, Consumer,
    message::Delivery as Message,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions},
    types::FieldTable,
};
use uuid::Uuid;

use super::{
    RabbitMqBackend,
    acks::{Acks, Answer},
    codec,
    error::broker,
    settle::{self, RabbitMqDelivery},
};
use crate::{Envelope, Error, QueueConfig, Result, runtime::client};

/// The deliveries of one queue, until the backend is closed or the broker is lost.
///
/// Dropped, it gives back what it has not handed out; what it has can still be settled.
pub struct RabbitMqDeliveries {
    consumer: Option<Consumer>,
    subscription: Arc<Subscription>,
}

/// What deliveries are settled on; the channel closes with the last of them.
#[derive(Debug)]
pub(super) struct Subscription {
    channel: Channel,
    acks: Acks,
    pub(super) queue: String,
    pub(super) backend: RabbitMqBackend,
}

impl Subscription {
    pub(super) async fn answer(&self, tag: u64, answer: Answer) -> lapin::Result<()> {
        self.acks.answer(tag, answer, &self.channel).await
    }
}

impl RabbitMqDeliveries {
    pub(super) async fn start(
        connection: &Connection,
        queue: &QueueConfig,
        backend: RabbitMqBackend,
    ) -> Result<Self> {
        let started = async {
            let channel = connection.create_channel().await?;
            channel
                .basic_qos(queue.prefetch, BasicQosOptions::default())
                .await?;
            let consumer = channel
                .basic_consume(
                    queue.name.as_str().into(),
                    tag(&queue.name).as_str().into(),
                    BasicConsumeOptions::default(),
                    FieldTable::default(),
                )
                .await?;
            Ok((channel, consumer))
        };
        let (channel, consumer) = started.await.map_err(broker("consume", &queue.name))?;
        Ok(Self {
            consumer: Some(consumer),
            subscription: Arc::new(Subscription {
                channel,
                acks: Acks::default(),
                queue: queue.name.clone(),
                backend,
            }),
        })
    }

    /// The job in `message`, or `None` once it is on its way out of the way.
    fn receive(&self, message: Message) -> Option<RabbitMqDelivery> {
        let subscription = self.subscription.clone();
        subscription.acks.hand_out(message.delivery_tag);
        match Envelope::from_bytes(&message.data) {
            Ok(envelope) => Some(RabbitMqDelivery::new(envelope, &message, subscription)),
            Err(error) => {
                client().run(settle::set_aside(message, error, subscription));
                None
            }
        }
    }
}

/// Says in the broker's consumer list whose this is.
fn tag(queue: &str) -> String {
    format!(
        "queuey.{}.{}",
        codec::cut(queue, 160),
        Uuid::new_v4().simple()
    )
}

impl Stream for RabbitMqDeliveries {
    type Item = Result<RabbitMqDelivery>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(consumer) = &mut self.consumer else {
                return Poll::Ready(None);
            };
            let ended = match ready!(consumer.poll_next(cx)) {
                Some(Ok(message)) => match self.receive(message) {
                    Some(delivery) => return Poll::Ready(Some(Ok(delivery))),
                    None => continue,
                },
                Some(Err(error)) => broker("consume", &self.subscription.queue)(error),
                None => Error::ConsumerStopped(self.subscription.queue.clone()),
            };
            self.consumer = None;
            return Poll::Ready((!self.subscription.backend.is_closed()).then_some(Err(ended)));
        }
    }
}

impl Drop for RabbitMqDeliveries {
    fn drop(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            client().run(give_back(consumer, self.subscription.clone()));
        }
    }
}

/// Cancels, then returns what the broker had already sent: a cancel alone leaves it unsettled.
async fn give_back(mut consumer: Consumer, subscription: Arc<Subscription>) {
    let cancelled = subscription
        .channel
        .basic_cancel(consumer.tag(), BasicCancelOptions::default())
        .await;
    if cancelled.is_err() {
        return;
    }
    while let Some(Ok(message)) = consumer.next().await {
        let given_back = subscription.answer(message.delivery_tag, Answer::GiveBack);
        if given_back.await.is_err() {
            return;
        }
    }
}

impl fmt::Debug for RabbitMqDeliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RabbitMqDeliveries")
            .field(&self.subscription.queue)
            .finish()
    }
}
