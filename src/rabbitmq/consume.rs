//! [`RabbitMqDeliveries`]: one queue's subscription, made again when it is lost.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_lite::future::or;
use futures_util::future::BoxFuture;
use lapin::message::Delivery as Message;

use super::{
    Attempt, RabbitMqBackend, Rebuilding, ack_timeout, codec, reconnect::next_delay, settle,
    settle::RabbitMqDelivery, subscription::Subscribed,
};
use crate::{Error, QueueConfig, Result, SubscriptionWatch, runtime::client};

/// The deliveries of one queue, until the backend is closed or the reconnect policy gives up.
///
/// Dropped, it gives back what it has not handed out; what it has can still be settled.
pub struct RabbitMqDeliveries {
    queue: QueueConfig,
    backend: RabbitMqBackend,
    watch: SubscriptionWatch,
    state: State,
}

enum State {
    Subscribed(Subscribed),
    Rebuilding(BoxFuture<'static, Result<Subscribed>>),
    Ended,
}

impl RabbitMqDeliveries {
    pub(super) async fn start(
        backend: RabbitMqBackend,
        queue: QueueConfig,
        watch: SubscriptionWatch,
    ) -> Result<Self> {
        let subscribed = match Subscribed::new(&backend, &queue).await {
            // As if it had been lost a moment later.
            Err(cause @ Error::Disconnected { .. }) => {
                say_lost(&queue, None, &cause);
                rebuild(backend.clone(), queue.clone(), watch.clone(), cause).await?
            }
            answer => answer?,
        };
        watch.subscribed();
        let version = subscribed.subscription.version();
        if let Some(why) = ack_timeout::unheeded(&queue, version) {
            log::warn!("{why}");
        }
        Ok(Self {
            queue,
            backend,
            watch,
            state: State::Subscribed(subscribed),
        })
    }

    /// The job in `message`, or `None` once it is on its way out of the way.
    fn receive(subscribed: &Subscribed, message: Message) -> Option<RabbitMqDelivery> {
        let subscription = subscribed.subscription.clone();
        subscription.hand_out(message.delivery_tag);
        match codec::envelope(&message.data, &message.properties) {
            Ok(envelope) => Some(RabbitMqDelivery::new(envelope, &message, subscription)),
            Err(error) => {
                client().run(settle::set_aside(message, error, subscription));
                None
            }
        }
    }

    fn end(&mut self, error: Error) -> Poll<Option<Result<RabbitMqDelivery>>> {
        self.state = State::Ended;
        Poll::Ready((!self.backend.is_closed()).then_some(Err(error)))
    }
}

impl Stream for RabbitMqDeliveries {
    type Item = Result<RabbitMqDelivery>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Subscribed(subscribed) => match ready!(subscribed.poll_next(cx)) {
                    Ok(message) => {
                        if let Some(delivery) = Self::receive(subscribed, message) {
                            return Poll::Ready(Some(Ok(delivery)));
                        }
                    }
                    Err(cause) if this.backend.is_closed() => return this.end(cause),
                    Err(cause) => {
                        say_lost(&this.queue, subscribed.subscription.version(), &cause);
                        let (backend, queue) = (this.backend.clone(), this.queue.clone());
                        let rebuilt = rebuild(backend, queue, this.watch.clone(), cause);
                        this.state = State::Rebuilding(rebuilt);
                    }
                },
                State::Rebuilding(rebuilt) => match ready!(rebuilt.as_mut().poll(cx)) {
                    Ok(subscribed) => this.state = State::Subscribed(subscribed),
                    Err(error) => return this.end(error),
                },
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

/// Subscribes again under the reconnect policy, after `cause` has ended the last subscription.
fn rebuild(
    backend: RabbitMqBackend,
    queue: QueueConfig,
    watch: SubscriptionWatch,
    cause: Error,
) -> BoxFuture<'static, Result<Subscribed>> {
    Box::pin(async move {
        let name = &queue.name;
        let mut failures = 0;
        let mut last = cause;
        loop {
            watch.lost(&last);
            // These come back, or not, under their own count.
            backend.connected(name).await?;
            let attempt = Attempt {
                failures,
                error: Some(&last),
                rebuilding: Rebuilding::Consumer,
            };
            let policy = backend.options().reconnect.as_deref();
            let delay = match next_delay(policy, &attempt) {
                Ok(Some(delay)) => delay,
                Ok(None) => return Err(last),
                Err(panic) => return Err(Error::broker("consume", name, panic)),
            };
            or(client().sleep(delay), backend.0.closing.raised()).await;
            match subscribe_again(&backend, &queue).await {
                Ok(subscribed) => {
                    watch.subscribed();
                    log::info!("subscribed to `{name}` again");
                    return Ok(subscribed);
                }
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    log::warn!("cannot subscribe to `{name}` again: {}", error.chain());
                    failures += u32::from(backend.is_connected());
                    last = error;
                }
            }
        }
    })
}

fn say_lost(queue: &QueueConfig, version: Option<&str>, cause: &Error) {
    let name = &queue.name;
    log::warn!("the subscription to `{name}` is lost: {}", cause.chain());
    if let Some(advice) = ack_timeout::advice(queue, version, cause) {
        log::error!("{advice}");
    }
}

/// The queue may be what was lost, so it is declared first.
async fn subscribe_again(backend: &RabbitMqBackend, queue: &QueueConfig) -> Result<Subscribed> {
    backend.declare_again(&queue.name).await?;
    Subscribed::new(backend, queue).await
}

/// Whether trying again has no point.
fn is_final(error: &Error) -> bool {
    error.is_permanent() || matches!(error, Error::Closed)
}

impl fmt::Debug for RabbitMqDeliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RabbitMqDeliveries")
            .field(&self.queue.name)
            .finish()
    }
}
