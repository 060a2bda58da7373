//! [`Ladders`]: stores jobs of quorum queues where they wait, declared once per connection.

use futures_util::future::{BoxFuture, try_join_all};
use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions},
    types::{AMQPValue, FieldTable},
};

use super::{
    declare::{declare_on, open},
    ladder::{self, DUE, Ladder, Level, UNROUTABLE},
    link::Live,
    publish::{Message, Publisher, Route},
    version::expires_by_priority,
};
use crate::{Envelope, Error, Result};

/// Stores jobs of quorum queues where they wait.
#[derive(Debug)]
pub(super) struct Ladders {
    publisher: Publisher,
}

impl Ladders {
    pub(super) fn new(publisher: Publisher) -> Self {
        Self { publisher }
    }

    /// Stores `envelope` where it waits for so many `seconds` and then returns to its queue.
    pub(super) fn store<'a>(
        &'a self,
        envelope: &'a Envelope,
        seconds: u32,
    ) -> BoxFuture<'a, Result<()>> {
        let (action, queue) = ("delay a job of", &envelope.queue);
        let stored = async move {
            let live = self.publisher.link.get(action, queue).await?;
            let by_priority = expires_by_priority(live.returns.version());
            let exchange = Ladder::of(envelope.priority, by_priority).exchange(seconds);
            let route = Route::by(&exchange, &ladder::routing_key(queue, seconds), queue);
            let message = || Message::of(envelope);
            match self.publisher.publish_by(route.clone(), &message).await {
                // Somebody has deleted a part of the ladder.
                Err(Error::Unroutable { .. } | Error::Broker { .. }) => {
                    declare(&live).await?;
                    self.publisher.publish_by(route, &message).await
                }
                verdict => verdict,
            }
        };
        Box::pin(self.publisher.in_time(action, queue, stored))
    }
}

/// Lets jobs that have waited come to `queue`.
pub(super) async fn attach(live: &Live, queue: &str) -> Result<()> {
    live.ladders.get_or_try_init(|| declare(live)).await?;
    let channel = open(live, queue).await?;
    let key = ladder::due_key(queue);
    let bound = bind(&channel, queue, DUE, &key);
    live.ask("bind", queue, bound).await
}

/// Declares what jobs of quorum queues wait in.
async fn declare(live: &Live) -> Result<()> {
    let mut levels: Vec<_> = Ladder::Common.levels().collect();
    if !expires_by_priority(live.returns.version()) {
        levels.extend(Ladder::Ahead.levels());
    }
    let channel = open(live, UNROUTABLE).await?;
    let declared = async {
        end(&channel).await?;
        // Many at a time: each would wait for a round trip of its own.
        let exchanges = levels
            .iter()
            .map(|it| declare_exchange(&channel, &it.exchange, ExchangeKind::Topic, None));
        try_join_all(exchanges).await?;
        let queues = levels.iter().map(|it| declare_on(&channel, &it.queue));
        try_join_all(queues).await?;
        try_join_all(levels.iter().map(|it| tie(&channel, it))).await
    };
    live.ask("declare", UNROUTABLE, declared).await.map(drop)
}

/// What comes behind the lowest level.
async fn end(channel: &Channel) -> lapin::Result<()> {
    declare_exchange(channel, UNROUTABLE, ExchangeKind::Fanout, None).await?;
    declare_on(channel, &ladder::unroutable()).await?;
    bind(channel, UNROUTABLE, UNROUTABLE, "").await?;
    // Else the lowest level would keep what it cannot deliver, and hold up everybody's jobs.
    declare_exchange(channel, DUE, ExchangeKind::Topic, Some(UNROUTABLE)).await
}

fn tie<'a>(channel: &'a Channel, level: &'a Level) -> BoxFuture<'a, lapin::Result<()>> {
    Box::pin(async move {
        bind(channel, &level.queue.name, &level.exchange, &level.stops).await?;
        channel
            .exchange_bind(
                level.next.as_str().into(),
                level.exchange.as_str().into(),
                level.passes.as_str().into(),
                ExchangeBindOptions::default(),
                FieldTable::default(),
            )
            .await
    })
}

fn declare_exchange<'a>(
    channel: &'a Channel,
    name: &str,
    kind: ExchangeKind,
    alternate: Option<&str>,
) -> BoxFuture<'a, lapin::Result<()>> {
    let mut arguments = FieldTable::default();
    if let Some(alternate) = alternate {
        let alternate = AMQPValue::LongString(alternate.into());
        arguments.insert("alternate-exchange".into(), alternate);
    }
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    Box::pin(channel.exchange_declare(name.into(), kind, options, arguments))
}

fn bind<'a>(
    channel: &'a Channel,
    queue: &str,
    exchange: &str,
    key: &str,
) -> BoxFuture<'a, lapin::Result<()>> {
    let options = QueueBindOptions::default();
    let (queue, exchange) = (queue.into(), exchange.into());
    Box::pin(channel.queue_bind(queue, exchange, key.into(), options, FieldTable::default()))
}
