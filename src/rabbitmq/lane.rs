//! [`Lane`]: a confirm channel, and the verdict on each publish on it.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use async_lock::SemaphoreGuardArc;
use futures_lite::future::poll_once;
use futures_util::future::BoxFuture;
use lapin::{
    Confirmation, PublisherConfirm,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};

use super::{
    channel::OpenChannel,
    error::{broker, lost},
    live::Live,
    lock,
    message::{Message, Route},
};
use crate::{Error, Result};

const MANDATORY: BasicPublishOptions = BasicPublishOptions {
    mandatory: true,
    immediate: false,
};

/// A confirm channel.
#[derive(Debug)]
pub(super) struct Lane {
    channel: Arc<OpenChannel>,
    /// A confirm did not come: the next publishes take another channel.
    retired: AtomicBool,
    /// lapin numbers a publish and queues its frames in two steps; mixed, confirms are too.
    order: Mutex<()>,
}

impl Lane {
    pub(super) async fn open(live: Arc<Live>, queue: &str) -> Result<Self> {
        let action = "publish to";
        let channel = OpenChannel::new(live, action, queue).await?;
        let selected = channel.confirm_select(ConfirmSelectOptions::default());
        channel.live.ask(action, queue, selected).await?;
        Ok(Self {
            channel,
            retired: AtomicBool::new(false),
            order: Mutex::default(),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        let retired = self.retired.load(Ordering::Relaxed);
        !retired && self.channel.carries()
    }

    pub(super) fn channel(&self) -> Arc<OpenChannel> {
        self.channel.clone()
    }

    /// Resolves when its connection was seen to be over.
    pub(super) async fn over(&self) {
        self.channel.live.over().await;
    }

    /// Whether an alarm of the broker keeps it from reading what is published.
    pub(super) fn is_blocked(&self) -> bool {
        self.channel.live.blocked().is_some()
    }

    /// Resolves when the broker takes publishes, or this lane can carry no more.
    pub(super) async fn takes_publishes(&self) {
        self.channel.live.takes_publishes().await;
    }

    /// Takes no more publishes; closed when the last of those in flight has ended.
    pub(super) fn retire(&self) {
        if !self.retired.swap(true, Ordering::Relaxed) {
            log::warn!("a confirm did not come: the next publishes take another channel");
        }
    }

    /// The verdict of the broker on `message`, whose place in the window is free with it.
    // Not an `async fn`, which keeps what it is given twice.
    pub(super) fn publish(
        self: Arc<Self>,
        place: SemaphoreGuardArc,
        route: Route,
        message: Message,
    ) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let _place = place;
            let size = message.body.len();
            let id = message.properties.message_id().clone();
            let confirmation = self
                .confirmed(pin!(self.channel.basic_publish(
                    route.exchange.clone(),
                    route.key.clone(),
                    MANDATORY,
                    &message.body,
                    message.properties,
                )))
                .await;
            let returned = self.channel.live.returns.take(&route.key, &id);
            let queue = route.queue();
            match (confirmation, returned) {
                (Err(error), _) => Err(match broker("publish to", queue)(error) {
                    // Somebody else's body was too large for the broker, and closed the channel.
                    Error::PayloadTooLarge { size: other, .. } if other != size => {
                        lost("publish to", queue, "its channel was closed")
                    }
                    error => error,
                }),
                (Ok(None), _) => Err(lost("publish to", queue, "its channel was closed")),
                (Ok(_), Some(reply)) => Err(Error::Unroutable {
                    queue: queue.to_owned(),
                    reply,
                }),
                (Ok(Some(Confirmation::Ack(_))), None) => Ok(()),
                (Ok(_), None) => Err(Error::Nacked {
                    queue: queue.to_owned(),
                }),
            }
        })
    }

    /// The broker's answer to `publish`; `None` when the channel was closed before lapin knew of it.
    async fn confirmed(
        &self,
        mut publish: Pin<&mut impl Future<Output = lapin::Result<PublisherConfirm>>>,
    ) -> lapin::Result<Option<Confirmation>> {
        let confirm = poll_fn(|cx| {
            let _alone = lock(&self.order);
            publish.as_mut().poll(cx)
        });
        let mut confirmed = pin!(async {
            let mut confirm = confirm.await?;
            if let Some(confirmation) = poll_once(&mut confirm).await {
                return confirmation.map(Some);
            }
            if !self.channel.status().connected() {
                // Closed between lapin's check and its note of this publish, it would never answer.
                return Ok(None);
            }
            confirm.await.map(Some)
        });
        // Nor may it answer what it was given in the moment the connection ends. Then all deadlines
        // are looked at, which comes by here.
        poll_fn(|cx| match confirmed.as_mut().poll(cx) {
            Poll::Pending if self.channel.live.is_over() => Poll::Ready(Ok(None)),
            answer => answer,
        })
        .await
    }
}
