//! [`Trace`]: copies of the messages that pass a queue, from the broker's tracer.

use std::sync::Arc;

use futures_lite::StreamExt;
use lapin::{
    BasicProperties, Consumer,
    message::Delivery,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueBindOptions,
        QueueDeclareOptions,
    },
    types::{AMQPValue, FieldTable},
};
use serde_json::Value;

use super::{Admin, headers};
use crate::{
    Envelope, Error, Result,
    limits::check_name,
    rabbitmq::{channel::OpenChannel, codec, error::broker, error::lost},
};

/// Where the tracer of each vhost publishes.
const EXCHANGE: &str = "amq.rabbitmq.trace";
const DELIVER: &str = "deliver.";
const PUBLISH: &str = "publish.";
/// So many copies wait for us at most; of more, the broker drops the oldest.
const BACKLOG: i32 = 10_000;
/// And so many here.
const PREFETCH: u16 = 1000;

/// Copies of what passes a queue, while the broker's operator has tracing on.
///
/// They come through a queue of our own, which ends with our connection; the queue that is watched
/// does not notice.
#[derive(Debug)]
pub struct Trace {
    channel: Arc<OpenChannel>,
    consumer: Consumer,
    queue: String,
}

/// A message that passed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Traced {
    /// What happened to it.
    pub passage: Passage,
    /// The job, if the body is one.
    pub envelope: Option<Envelope>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// Whether somebody had it in hand before; `None` when it was published.
    pub redelivered: Option<bool>,
    /// The node it passed.
    pub node: Option<String>,
    properties: FieldTable,
}

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// Somebody published it to the queue.
    Published,
    /// It was handed to a consumer.
    Delivered,
}

impl Trace {
    pub(super) async fn start(admin: &Admin, queue: &str, published: bool) -> Result<Self> {
        const ACTION: &str = "watch";
        let key = format!("{DELIVER}{queue}");
        check_name(queue)?;
        if key.len() > usize::from(u8::MAX) {
            return Err(Error::broker(ACTION, queue, "its name is too long for it"));
        }
        let link = admin.0.consuming().await?;
        let live = link.get(ACTION, queue).await?;
        let channel = OpenChannel::new(live.clone(), ACTION, queue).await?;
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), BACKLOG.into());
        // Said because a vhost may have quorum as its default, which is never exclusive.
        let kind = AMQPValue::LongString("classic".into());
        arguments.insert("x-queue-type".into(), kind);
        // Exclusive: of those that are not durable, the only ones that no broker denies.
        let options = QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..QueueDeclareOptions::default()
        };
        let declared = channel.queue_declare("".into(), options, arguments);
        let own = live.ask(ACTION, queue, declared).await?.name().clone();
        // All publishes of the vhost: the key names the exchange alone.
        let publishes = published.then(|| format!("{PUBLISH}#"));
        for key in [Some(key), publishes].into_iter().flatten() {
            let bound = channel.queue_bind(
                own.clone(),
                EXCHANGE.into(),
                key.into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            );
            live.ask(ACTION, queue, bound).await?;
        }
        // A caller that is slow must not fill the memory of this process.
        let prefetch = channel.basic_qos(PREFETCH, BasicQosOptions::default());
        live.ask(ACTION, queue, prefetch).await?;
        let options = BasicConsumeOptions {
            exclusive: true,
            ..BasicConsumeOptions::default()
        };
        let consume = channel.basic_consume(own, "".into(), options, FieldTable::default());
        let consumer = live.ask(ACTION, queue, consume).await?;
        Ok(Self {
            channel,
            consumer,
            queue: queue.into(),
        })
    }

    /// The next message that passes; waits for it as long as it takes.
    ///
    /// # Errors
    /// When the connection is lost.
    pub async fn next(&mut self) -> Result<Traced> {
        loop {
            let live = self.channel.live.clone();
            let ended = async {
                live.ended().await;
                None
            };
            let next = futures_lite::future::or(self.consumer.next(), ended).await;
            let Some(delivery) = next else {
                return Err(lost("watch", &self.queue, "what passed since is not known"));
            };
            let delivery = delivery.map_err(broker("watch", &self.queue))?;
            let acked = delivery.ack(BasicAckOptions::default()).await;
            acked.map_err(broker("watch", &self.queue))?;
            if let Some(traced) = Traced::of(delivery, &self.queue) {
                return Ok(traced);
            }
        }
    }
}

impl Traced {
    /// The message in this copy, if it passed `queue`.
    fn of(copy: Delivery, queue: &str) -> Option<Self> {
        let headers = copy.properties.headers().clone().unwrap_or_default();
        let key = copy.routing_key.as_str();
        let is_queue = |name: &AMQPValue| text(name).as_deref() == Some(queue);
        let is_routed = match headers.inner().get("routed_queues") {
            Some(AMQPValue::FieldArray(names)) => names.as_slice().iter().any(is_queue),
            _ => false,
        };
        let passage = if key.strip_prefix(DELIVER) == Some(queue) {
            Passage::Delivered
        } else if key.starts_with(PUBLISH) && is_routed {
            Passage::Published
        } else {
            return None;
        };
        let properties = match headers.inner().get("properties") {
            Some(AMQPValue::FieldTable(properties)) => properties.clone(),
            _ => FieldTable::default(),
        };
        let own = match properties.inner().get("headers") {
            Some(AMQPValue::FieldTable(own)) => own.clone(),
            _ => FieldTable::default(),
        };
        let as_sent = BasicProperties::default().with_headers(own);
        Some(Self {
            passage,
            envelope: codec::envelope(&copy.data, &as_sent).ok(),
            body: copy.data,
            redelivered: headers.inner().get("redelivered").map(is_true),
            node: headers.inner().get("node").and_then(text),
            properties,
        })
    }

    /// The message id, as its publisher set it.
    pub fn message_id(&self) -> Option<String> {
        self.properties.inner().get("message_id").and_then(text)
    }

    /// The type, as its publisher set it.
    pub fn message_type(&self) -> Option<String> {
        self.properties.inner().get("type").and_then(text)
    }

    /// All headers, as JSON.
    pub fn headers_json(&self) -> Value {
        match self.properties.inner().get("headers") {
            Some(AMQPValue::FieldTable(own)) => headers::to_json(own),
            _ => Value::Null,
        }
    }
}

fn text(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

/// The tracer says it with a number.
fn is_true(value: &AMQPValue) -> bool {
    match value {
        AMQPValue::Boolean(it) => *it,
        AMQPValue::ShortShortInt(it) => *it != 0,
        AMQPValue::ShortShortUInt(it) => *it != 0,
        AMQPValue::ShortInt(it) => *it != 0,
        AMQPValue::LongInt(it) => *it != 0,
        AMQPValue::LongLongInt(it) => *it != 0,
        _ => false,
    }
}
