//! [`Publisher`]: confirmed and mandatory, many at a time, and every verdict exact.

use std::{future::Future, sync::Arc};

use async_lock::{Semaphore, SemaphoreGuardArc};
use futures_lite::future::{or, poll_once};
use futures_util::future::BoxFuture;

use super::{
    RabbitMqOptions, codec,
    in_flight::InFlight,
    lane::Lane,
    link::Link,
    message::{Compose, Message, Route},
    methods::declare_queue,
    topology::Declaration,
};
use crate::{Envelope, Error, Result, runtime::client};

/// Publishes in flight; more wait their turn.
const WINDOW: usize = 1024;

/// Publishes on one confirm channel at a time, and on another when that is lost.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) link: Arc<Link>,
    lane: async_lock::Mutex<Option<Arc<Lane>>>,
    window: Arc<Semaphore>,
    max_size: usize,
}

impl Publisher {
    pub(super) fn new(link: Arc<Link>, options: &RabbitMqOptions) -> Self {
        Self {
            link,
            lane: async_lock::Mutex::default(),
            window: Arc::new(Semaphore::new(WINDOW)),
            max_size: options.max_message_size,
        }
    }

    /// Publishes on a channel of its own, which may be closed without harm to this one's, but within
    /// the same window.
    pub(super) fn beside(&self) -> Self {
        Self {
            link: self.link.clone(),
            lane: async_lock::Mutex::default(),
            window: self.window.clone(),
            max_size: self.max_size,
        }
    }

    /// The message that carries `envelope`.
    pub(super) fn message(&self, envelope: &Envelope) -> Message {
        Message {
            properties: codec::full_properties(envelope, self.link.frame_max()),
            body: envelope.to_bytes(),
        }
    }

    /// Publishes straight to a queue; returns when the broker has the message, or says why it has not.
    ///
    /// What is cut off before its confirm is published again: it may be stored twice.
    pub(super) async fn publish(&self, route: Route, message: Compose<'_>) -> Result<()> {
        let queue = route.queue();
        let published = self.publish_by(&route, message);
        self.in_time("publish to", queue, published).await
    }

    /// Like [`publish`](Self::publish), for as long as it takes.
    pub(super) async fn publish_by(&self, route: &Route, message: Compose<'_>) -> Result<()> {
        loop {
            match self.try_to_publish(route, message).await {
                Err(Error::Disconnected { .. }) => {}
                verdict => return verdict,
            }
            let queue = route.queue();
            self.link.come_again("publish to", queue).await?;
            log::debug!("a publish to `{queue}` was cut off and is repeated");
        }
    }

    async fn try_to_publish(&self, route: &Route, message: Compose<'_>) -> Result<()> {
        let lane = self.lane(route.queue()).await?;
        let place = self.place().await;
        self.send(lane, place, route.clone(), message())?.await
    }

    /// The outcome of `work`, unless that takes longer than a publish may.
    // Not an `async fn`, whose future would hold `work` twice.
    pub(super) fn in_time<T>(
        &self,
        action: &'static str,
        queue: &str,
        work: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        let deadlines = &self.link.deadlines;
        let late = deadlines.start();
        or(work, async move {
            late.await;
            Err(self.link.no_answer(action, queue, deadlines.limit()))
        })
    }

    /// A place in the window.
    pub(super) async fn place(&self) -> SemaphoreGuardArc {
        self.window.acquire_arc().await
    }

    /// Publishes `message` on this very `lane`.
    pub(super) fn send(
        &self,
        lane: Arc<Lane>,
        place: SemaphoreGuardArc,
        route: Route,
        message: Message,
    ) -> Result<InFlight> {
        let size = message.body.len();
        if route.limited && size > self.max_size {
            return Err(Error::PayloadTooLarge {
                queue: route.queue().into(),
                size,
                limit: self.max_size,
            });
        }
        let published = lane.clone().publish(place, route, message);
        Ok(InFlight::new(lane, self.link.deadlines.limit(), published))
    }

    /// Declares `queue` and does not wait for the answer: what is published on the lane it answers
    /// with comes behind the declare. A refusal closes that lane.
    pub(super) async fn declare_ahead(&self, queue: &Declaration) -> Result<Arc<Lane>> {
        let lane = self.lane(&queue.name).await?;
        let (channel, queue) = (lane.channel(), queue.clone());
        let mut declare = Box::pin(async move { drop(declare_queue(&channel, &queue).await) });
        // The first poll hands the frame to the client.
        if poll_once(&mut declare).await.is_none() {
            client().run(declare);
        }
        Ok(lane)
    }

    /// An open lane that takes publishes. What is written under an alarm is stored at its end, also when
    /// nobody waits for it any more and another has taken its place.
    pub(super) async fn lane(&self, queue: &str) -> Result<Arc<Lane>> {
        loop {
            let lane = self.open_one(queue).await?;
            if !lane.is_blocked() {
                return Ok(lane);
            }
            lane.takes_publishes().await;
        }
    }

    async fn open_one(&self, queue: &str) -> Result<Arc<Lane>> {
        let mut lane = self.lane.lock().await;
        if let Some(lane) = &*lane
            && lane.is_open()
        {
            return Ok(lane.clone());
        }
        let opened = self.open_lane(queue).await?;
        Ok(lane.insert(Arc::new(opened)).clone())
    }

    /// Boxed: every publish would carry what few need.
    fn open_lane<'a>(&'a self, queue: &'a str) -> BoxFuture<'a, Result<Lane>> {
        Box::pin(async move {
            let live = self.link.get("publish to", queue).await?;
            Lane::open(live, queue).await
        })
    }

    /// Waits until nothing is in flight any more, on this channel or beside it.
    pub(super) async fn drain(&self) {
        let mut places = vec![];
        for _ in 0..WINDOW {
            places.push(self.window.acquire().await);
        }
    }
}
