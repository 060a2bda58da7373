//! AMQP methods as this library calls them. Boxed: each is compiled once.

use futures_util::future::BoxFuture;
use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

use super::topology::Declaration;

pub(super) fn declare_queue<'a>(
    channel: &'a Channel,
    queue: &'a Declaration,
) -> BoxFuture<'a, lapin::Result<()>> {
    let options = QueueDeclareOptions {
        durable: queue.durable,
        ..QueueDeclareOptions::default()
    };
    Box::pin(async move {
        channel
            .queue_declare(queue.name.as_str().into(), options, queue.arguments.clone())
            .await
            .map(drop)
    })
}

pub(super) fn declare_exchange<'a>(
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

/// Lets `exchange` hand on to `queue` what matches `key`.
pub(super) fn bind<'a>(
    channel: &'a Channel,
    queue: &str,
    exchange: &str,
    key: &str,
) -> BoxFuture<'a, lapin::Result<()>> {
    let options = QueueBindOptions::default();
    let (queue, exchange) = (queue.into(), exchange.into());
    Box::pin(channel.queue_bind(queue, exchange, key.into(), options, FieldTable::default()))
}

/// Lets `exchange` hand on to the exchange `next` what matches `key`.
pub(super) fn chain<'a>(
    channel: &'a Channel,
    next: &str,
    exchange: &str,
    key: &str,
) -> BoxFuture<'a, lapin::Result<()>> {
    let options = ExchangeBindOptions::default();
    let (next, exchange) = (next.into(), exchange.into());
    Box::pin(channel.exchange_bind(next, exchange, key.into(), options, FieldTable::default()))
}
