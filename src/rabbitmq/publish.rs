//! [`Publisher`]: confirmed and mandatory, many at a time, and every verdict exact.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_lock::{Semaphore, SemaphoreGuardArc};
use futures_lite::future::{or, poll_once};
use futures_util::future::BoxFuture;
use lapin::{
    BasicProperties, Channel, Confirmation, PublisherConfirm,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::ShortString,
};

use super::{
    RabbitMqOptions, codec,
    declare::declare_on,
    error::broker,
    in_flight::InFlight,
    link::{Link, Live, lost},
    lock,
    topology::Declaration,
};
use crate::{
    Envelope, Error, Result,
    limits::check_name,
    runtime::{Deadlines, client},
};

/// Publishes in flight; more wait their turn.
const WINDOW: usize = 1024;

const MANDATORY: BasicPublishOptions = BasicPublishOptions {
    mandatory: true,
    immediate: false,
};

/// Before what was cut off is repeated.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// How a message gets to its queue.
#[derive(Debug, Clone)]
pub(super) struct Route {
    exchange: ShortString,
    key: ShortString,
    /// Where the key is not its name.
    queue: Option<String>,
}

impl Route {
    /// Straight to `queue`.
    pub(super) fn to(queue: &str) -> Self {
        Self {
            exchange: "".into(),
            key: queue.into(),
            queue: None,
        }
    }

    /// By way of `exchange`.
    pub(super) fn by(exchange: &str, key: &str, queue: &str) -> Self {
        Self {
            exchange: exchange.into(),
            key: key.into(),
            queue: Some(queue.into()),
        }
    }

    fn queue(&self) -> &str {
        self.queue.as_deref().unwrap_or(self.key.as_str())
    }
}

/// What is published.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) properties: BasicProperties,
    pub(super) body: Vec<u8>,
}

impl Message {
    pub(super) fn of(envelope: &Envelope) -> Self {
        Self {
            properties: codec::properties(envelope),
            body: envelope.to_bytes(),
        }
    }
}

/// Makes a message, again for each time it is published.
pub(super) type Compose<'a> = &'a (dyn Fn() -> Message + Sync);

/// Publishes on one confirm channel at a time, and on another when that is lost.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) link: Arc<Link>,
    lane: async_lock::Mutex<Option<Arc<Lane>>>,
    window: Arc<Semaphore>,
    deadlines: Arc<Deadlines>,
    max_size: usize,
}

/// A confirm channel.
#[derive(Debug)]
pub(super) struct Lane {
    channel: Channel,
    live: Arc<Live>,
    /// A confirm did not come: the next publishes take another channel.
    retired: AtomicBool,
    /// lapin numbers a publish and queues its frames in two steps; mixed, confirms are too.
    order: Mutex<()>,
}

impl Publisher {
    pub(super) fn new(link: Arc<Link>, options: &RabbitMqOptions) -> Self {
        Self {
            link,
            lane: async_lock::Mutex::default(),
            window: Arc::new(Semaphore::new(WINDOW)),
            deadlines: Arc::new(Deadlines::new(options.publish_timeout)),
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
            deadlines: self.deadlines.clone(),
            max_size: self.max_size,
        }
    }

    /// Publishes to `queue`; returns when the broker has the message, or says why it has not.
    ///
    /// What is cut off before its confirm is published again: it may be stored twice.
    pub(super) async fn publish(&self, queue: &str, message: Compose<'_>) -> Result<()> {
        check_name(queue)?;
        let published = self.publish_by(Route::to(queue), message);
        self.in_time("publish to", queue, published).await
    }

    /// Like [`publish`](Self::publish), for as long as it takes.
    pub(super) async fn publish_by(&self, route: Route, message: Compose<'_>) -> Result<()> {
        loop {
            match self.try_to_publish(&route, message).await {
                Err(Error::Disconnected { .. }) if self.link.comes_back() => {}
                verdict => return verdict,
            }
            let queue = route.queue();
            log::debug!("a publish to `{queue}` was cut off and is repeated");
            client().sleep(PAUSE).await;
        }
    }

    async fn try_to_publish(&self, route: &Route, message: Compose<'_>) -> Result<()> {
        let lane = self.lane(route.queue()).await?;
        let place = self.place().await;
        self.send(lane, place, route.clone(), message()).await
    }

    /// The outcome of `work`, unless that takes longer than a publish may.
    // Not an `async fn`, whose future would hold `work` twice.
    pub(super) fn in_time<T>(
        &self,
        action: &'static str,
        queue: &str,
        work: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        let late = self.deadlines.start();
        or(work, async move {
            late.await;
            let limit = self.deadlines.limit();
            Err(match self.link.current().and_then(|live| live.blocked()) {
                Some(reason) => Error::Blocked {
                    action,
                    queue: queue.into(),
                    limit,
                    reason,
                },
                None => Error::TimedOut {
                    action,
                    subject: queue.into(),
                    limit,
                },
            })
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
    ) -> InFlight {
        let max_size = self.max_size;
        // What it captures and holds across an await is moved and kept for every publish.
        InFlight::new(lane.clone(), self.deadlines.limit(), async move {
            let _place = place;
            let size = message.body.len();
            if size > max_size {
                return Err(Error::PayloadTooLarge {
                    queue: route.queue().into(),
                    size,
                    limit: max_size,
                });
            }
            let id = message.properties.message_id().clone();
            let confirmation = lane
                .confirmed(pin!(lane.channel.basic_publish(
                    route.exchange.clone(),
                    route.key.clone(),
                    MANDATORY,
                    &message.body,
                    message.properties,
                )))
                .await;
            let returned = lane.live.returns.take(&route.key, &id);
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

    /// Declares `queue` and does not wait for the answer: what is published on the lane it answers
    /// with comes behind the declare. A refusal closes that lane.
    pub(super) async fn declare_ahead(&self, queue: &Declaration) -> Result<Arc<Lane>> {
        let lane = self.lane(&queue.name).await?;
        let (channel, queue) = (lane.channel.clone(), queue.clone());
        let mut declare = Box::pin(async move { drop(declare_on(&channel, &queue).await) });
        // The first poll hands the frame to the client.
        if poll_once(&mut declare).await.is_none() {
            client().run(declare);
        }
        Ok(lane)
    }

    pub(super) async fn lane(&self, queue: &str) -> Result<Arc<Lane>> {
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
            let opened = Lane::open(live.clone());
            live.ask("publish to", queue, opened).await
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

impl Lane {
    async fn open(live: Arc<Live>) -> lapin::Result<Self> {
        let channel = live.connection.create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        Ok(Self {
            channel,
            live,
            retired: AtomicBool::new(false),
            order: Mutex::default(),
        })
    }

    fn is_open(&self) -> bool {
        let retired = self.retired.load(Ordering::Relaxed);
        !retired && self.live.carries(&self.channel)
    }

    /// Whether an alarm of the broker keeps it from reading what is published.
    pub(super) fn is_blocked(&self) -> bool {
        self.live.blocked().is_some()
    }

    /// Takes no more publishes; closed when the last of those in flight has ended.
    pub(super) fn retire(&self) {
        if !self.retired.swap(true, Ordering::Relaxed) {
            log::warn!("a confirm did not come: the next publishes take another channel");
        }
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
        let mut confirm = confirm.await?;
        match poll_once(&mut confirm).await {
            Some(confirmation) => confirmation.map(Some),
            // Closed between lapin's check and its note of this publish, it would never answer.
            None if !self.channel.status().connected() => Ok(None),
            None => confirm.await.map(Some),
        }
    }
}
