//! [`Publisher`]: confirmed and mandatory, many at a time, and every verdict exact.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use async_lock::Semaphore;
use futures_lite::future;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::ShortString,
};

use super::{declare::declare_on, error::broker, lock, topology::Declaration};
use crate::{
    Error, Result,
    limits::check_name,
    runtime::{Returns, client},
};

/// Publishes in flight; more wait their turn.
const WINDOW: usize = 1024;

/// Publishes on one confirm channel at a time.
#[derive(Debug)]
pub(super) struct Publisher {
    connection: Arc<Connection>,
    lane: async_lock::Mutex<Option<Arc<Lane>>>,
    window: Arc<Semaphore>,
    returns: Arc<Returns>,
}

/// A confirm channel.
#[derive(Debug)]
pub(super) struct Lane {
    channel: Channel,
    /// lapin numbers a publish and queues its frames in two steps; mixed, confirms are too.
    order: Mutex<()>,
}

impl Publisher {
    pub(super) fn new(connection: Arc<Connection>, returns: Arc<Returns>) -> Self {
        Self {
            connection,
            lane: async_lock::Mutex::default(),
            window: Arc::new(Semaphore::new(WINDOW)),
            returns,
        }
    }

    /// Publishes to `queue`; returns when the broker has the message, or says why it has not.
    pub(super) async fn publish(
        &self,
        queue: &str,
        properties: BasicProperties,
        body: Vec<u8>,
    ) -> Result<()> {
        check_name(queue)?;
        let lane = self.lane(queue).await?;
        self.publish_on(lane, queue, properties, body).await
    }

    /// Publishes to `queue` on this very `lane`.
    pub(super) async fn publish_on(
        &self,
        lane: Arc<Lane>,
        queue: &str,
        properties: BasicProperties,
        body: Vec<u8>,
    ) -> Result<()> {
        let place = self.window.acquire_arc().await;
        let (queue, returns) = (ShortString::from(queue), self.returns.clone());
        InFlight::new(async move {
            let id = properties.message_id().clone();
            let confirmation = lane.publish(queue.clone(), properties, &body).await;
            drop(place);
            let returned = returns.take(&queue, &id);
            let queue = queue.as_str();
            match (confirmation, returned) {
                (Err(error), _) => Err(broker("publish to", queue)(error)),
                (Ok(_), Some(reply)) => Err(Error::Unroutable {
                    queue: queue.to_owned(),
                    reply,
                }),
                (Ok(Confirmation::Ack(_)), None) => Ok(()),
                (Ok(_), None) => Err(Error::Nacked {
                    queue: queue.to_owned(),
                }),
            }
        })
        .await
    }

    /// Declares `queue` and does not wait for the answer: what is published on the lane it answers
    /// with comes behind the declare. A refusal closes that lane.
    pub(super) async fn declare_ahead(&self, queue: &Declaration) -> Result<Arc<Lane>> {
        let lane = self.lane(&queue.name).await?;
        let (channel, queue) = (lane.channel.clone(), queue.clone());
        let mut declare = Box::pin(async move { drop(declare_on(&channel, &queue).await) });
        // The first poll hands the frame to the client.
        if future::poll_once(&mut declare).await.is_none() {
            client().run(declare);
        }
        Ok(lane)
    }

    pub(super) async fn lane(&self, queue: &str) -> Result<Arc<Lane>> {
        let mut lane = self.lane.lock().await;
        match &*lane {
            Some(lane) if lane.channel.status().connected() => Ok(lane.clone()),
            _ => {
                let opened = Lane::open(&self.connection).await;
                let opened = opened.map_err(broker("publish to", queue))?;
                Ok(lane.insert(Arc::new(opened)).clone())
            }
        }
    }
}

impl Lane {
    async fn open(connection: &Connection) -> lapin::Result<Self> {
        let channel = connection.create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        Ok(Self {
            channel,
            order: Mutex::default(),
        })
    }

    async fn publish(
        &self,
        queue: ShortString,
        properties: BasicProperties,
        body: &[u8],
    ) -> lapin::Result<Confirmation> {
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let mut publish =
            pin!(
                self.channel
                    .basic_publish("".into(), queue, options, body, properties)
            );
        let confirm = poll_fn(|cx| {
            let _alone = lock(&self.order);
            publish.as_mut().poll(cx)
        });
        confirm.await?.await
    }
}

/// A publish that goes on when its caller has dropped it: its place in the window and what lapin
/// keeps for it are free when the broker has answered, not before.
struct InFlight<F>(Option<Pin<Box<F>>>)
where
    F: Future<Output = Result<()>> + Send + 'static;

impl<F> InFlight<F>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    fn new(publish: F) -> Self {
        Self(Some(Box::pin(publish)))
    }
}

impl<F> Future for InFlight<F>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(publish) = &mut self.0 else {
            return Poll::Ready(Err(Error::Closed));
        };
        let verdict = ready!(publish.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(verdict)
    }
}

impl<F> Drop for InFlight<F>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(publish) = self.0.take() {
            client().run(async move { drop(publish.await) });
        }
    }
}
