//! Declares what jobs of quorum queues wait in, once per connection, and ties their queues to it.

use std::sync::Arc;

use futures_util::future::{BoxFuture, try_join_all};
use lapin::{Channel, ExchangeKind};

use super::{
    channel::OpenChannel,
    ladder::{self, DUE, Ladder, Level, UNROUTABLE},
    live::Live,
    methods::{bind, chain, declare_exchange, declare_queue},
    version::expires_by_priority,
};
use crate::Result;

/// Lets jobs that have waited come to `queue`.
pub(super) async fn attach(live: &Arc<Live>, queue: &str) -> Result<()> {
    live.ladders.get_or_try_init(|| declare(live)).await?;
    let channel = OpenChannel::new(live.clone(), "declare", queue).await?;
    let key = ladder::due_key(queue);
    let bound = bind(&channel, queue, DUE, &key);
    live.ask("bind", queue, bound).await
}

/// Declares what jobs of quorum queues wait in.
pub(super) async fn declare(live: &Arc<Live>) -> Result<()> {
    let mut levels: Vec<_> = Ladder::Common.levels().collect();
    if !expires_by_priority(live.returns.version()) {
        levels.extend(Ladder::Ahead.levels());
    }
    let channel = OpenChannel::new(live.clone(), "declare", UNROUTABLE).await?;
    let declared = async {
        end(&channel).await?;
        // Many at a time: each would wait for a round trip of its own.
        let exchanges = levels
            .iter()
            .map(|it| declare_exchange(&channel, &it.exchange, ExchangeKind::Topic, None));
        try_join_all(exchanges).await?;
        let queues = levels.iter().map(|it| declare_queue(&channel, &it.queue));
        try_join_all(queues).await?;
        try_join_all(levels.iter().map(|it| tie(&channel, it))).await
    };
    live.ask("declare", UNROUTABLE, declared).await.map(drop)
}

/// What comes behind the lowest level.
async fn end(channel: &Channel) -> lapin::Result<()> {
    declare_exchange(channel, UNROUTABLE, ExchangeKind::Fanout, None).await?;
    declare_queue(channel, &ladder::unroutable()).await?;
    bind(channel, UNROUTABLE, UNROUTABLE, "").await?;
    // Else the lowest level would keep what it cannot deliver, and hold up everybody's jobs.
    declare_exchange(channel, DUE, ExchangeKind::Topic, Some(UNROUTABLE)).await
}

fn tie<'a>(channel: &'a Channel, level: &'a Level) -> BoxFuture<'a, lapin::Result<()>> {
    Box::pin(async move {
        bind(channel, &level.queue.name, &level.exchange, &level.stops).await?;
        chain(channel, &level.next, &level.exchange, &level.passes).await
    })
}
