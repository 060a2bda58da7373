//! [`Subscribed`]: one consumer on a channel of its own, and what its deliveries are settled on.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_lite::StreamExt;
use futures_util::future::BoxFuture;
use lapin::{
    Consumer,
    message::Delivery as Message,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions},
};
use uuid::Uuid;

use super::{
    RabbitMqBackend, ack_timeout,
    acks::{Acks, Answer},
    channel::OpenChannel,
    error::broker,
    lock, version,
};
use crate::{Error, QueueConfig, QueueKind, Result, limits::cut, runtime::client};

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A consumer; dropped, it gives back what it has not handed out.
pub(super) struct Subscribed {
    consumer: Option<Consumer>,
    pub(super) subscription: Arc<Subscription>,
}

/// What deliveries are settled on; the channel closes with the last of them.
#[derive(Debug)]
pub(super) struct Subscription {
    channel: Arc<OpenChannel>,
    acks: Acks,
    pub(super) number: u64,
    pub(super) queue: String,
    /// Whether the queue counts the deliveries that were lost.
    pub(super) counts_losses: bool,
    pub(super) backend: RabbitMqBackend,
}

impl Subscription {
    /// The version of the broker.
    pub(super) fn version(&self) -> Option<&str> {
        self.channel.live.returns.version()
    }

    /// A delivery leaves the stream.
    pub(super) fn hand_out(&self, tag: u64) {
        self.acks.hand_out(tag);
    }

    /// A job that has not started here is lost with the channel.
    pub(super) fn lose(&self, job: Uuid) {
        lock(&self.backend.0.survived).note(job);
    }

    /// How often a job that comes back, and that its quorum queue got back so often, was in the hands
    /// of a process that ended.
    pub(super) fn crashes(&self, job: Uuid, times: u32) -> u32 {
        let mut survived = lock(&self.backend.0.survived);
        match self.counts_losses {
            true => times.saturating_sub(survived.times(job)),
            false => u32::from(!survived.take(job)),
        }
    }

    /// Whether answers can still reach the broker. When they cannot, it hands the jobs out again.
    pub(super) fn is_open(&self) -> bool {
        self.channel.carries()
    }

    /// Answers the delivery `tag`; returns when the answer is written.
    pub(super) fn answer(
        &self,
        action: &'static str,
        tag: u64,
        answer: Answer,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let written = self.acks.answer(tag, answer, &self.channel);
            written.await.map_err(broker(action, &self.queue))
        })
    }
}

impl Subscribed {
    pub(super) async fn new(backend: &RabbitMqBackend, queue: &QueueConfig) -> Result<Self> {
        let name = &queue.name;
        let live = backend.consuming().await?.get("consume", name).await?;
        let version = live.returns.version();
        let counts_losses =
            queue.kind == QueueKind::Quorum && version::counts_losses_alone(version);
        let channel = OpenChannel::new(live.clone(), "consume", name).await?;
        let started = async {
            channel
                .basic_qos(queue.prefetch, BasicQosOptions::default())
                .await?;
            channel
                .basic_consume(
                    name.as_str().into(),
                    tag(name).as_str().into(),
                    BasicConsumeOptions::default(),
                    ack_timeout::arguments(queue, version),
                )
                .await
        };
        let consumer = live.ask("consume", name, started).await?;
        Ok(Self {
            consumer: Some(consumer),
            subscription: Arc::new(Subscription {
                channel,
                acks: Acks::new(queue.prefetch),
                number: NUMBERS.fetch_add(1, Ordering::Relaxed),
                queue: name.clone(),
                counts_losses,
                backend: backend.clone(),
            }),
        })
    }

    /// The next message, or why there will be no more.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Message>> {
        while let Some(consumer) = &mut self.consumer {
            match std::task::ready!(Pin::new(consumer).poll_next(cx)) {
                Some(Ok(message)) if self.subscription.is_open() => {
                    return Poll::Ready(Ok(message));
                }
                // Left over from before the loss: the broker has it back.
                Some(Ok(message)) => {
                    let id = message.properties.message_id().as_ref();
                    let job = id.and_then(|id| Uuid::parse_str(id.as_str()).ok());
                    job.into_iter().for_each(|job| self.subscription.lose(job));
                }
                Some(Err(error)) => {
                    self.consumer = None;
                    let queue = &self.subscription.queue;
                    return Poll::Ready(Err(broker("consume", queue)(error)));
                }
                // A quorum queue that ends a consumer for a late ack serves it again once the ack
                // is there, unless it is cancelled from here too.
                None => self.give_back(),
            }
        }
        let queue = self.subscription.queue.clone();
        Poll::Ready(Err(Error::ConsumerStopped(queue)))
    }

    fn give_back(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            client().run(give_back(consumer, self.subscription.clone()));
        }
    }
}

/// Says in the broker's consumer list whose this is.
fn tag(queue: &str) -> String {
    format!("queuey.{}.{}", cut(queue, 160), Uuid::new_v4().simple())
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Cancels, then returns what the broker had already sent: a cancel alone leaves it unsettled.
async fn give_back(mut consumer: Consumer, subscription: Arc<Subscription>) {
    let cancelled = subscription
        .channel
        .basic_cancel(consumer.tag(), BasicCancelOptions::default());
    let queue = &subscription.queue;
    let cancelled = subscription
        .channel
        .live
        .ask("stop consuming", queue, cancelled);
    if cancelled.await.is_err() {
        return;
    }
    while let Some(Ok(message)) = consumer.next().await {
        let tag = message.delivery_tag;
        let given_back = subscription.answer("give back a job of", tag, Answer::GiveBack);
        if given_back.await.is_err() {
            return;
        }
    }
}
