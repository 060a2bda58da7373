//! [`Letter`]: a message in hand during a pass.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use lapin::{
    Acker, BasicProperties,
    message::Delivery,
    options::BasicAckOptions,
    types::{AMQPValue, FieldTable},
};
use serde_json::Value;

use super::{headers, pass::Kept};
use crate::{
    Envelope, Error, Result,
    rabbitmq::{
        codec,
        error::{broker, lost},
    },
};

/// The broker's own reason, where it has taken a job from its queue.
const BROKERS_REASON: &str = "x-first-death-reason";

/// A message in hand, to be [kept](Self::keep) or [removed](Self::remove). Dropped, it is kept too,
/// but takes up the pass: which may then find no end.
#[derive(Debug)]
#[non_exhaustive]
pub struct Letter {
    /// The job, if the body is one.
    pub envelope: Option<Envelope>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// Whether somebody had it in hand before.
    pub redelivered: bool,
    properties: BasicProperties,
    acker: Acker,
    queue: String,
    tag: u64,
    kept: Arc<Kept>,
}

impl Letter {
    pub(super) fn new(delivery: Delivery, queue: &str, kept: Arc<Kept>) -> Self {
        Self {
            envelope: codec::envelope(&delivery.data, &delivery.properties).ok(),
            tag: delivery.delivery_tag,
            body: delivery.data,
            redelivered: delivery.redelivered,
            properties: delivery.properties,
            acker: delivery.acker,
            queue: queue.into(),
            kept,
        }
    }

    /// Why the job is dead: the worker's reason, or the broker's.
    pub fn reason(&self) -> Option<String> {
        self.text(codec::DEATH_REASON)
            .or_else(|| self.brokers_reason())
    }

    /// Why the broker took it from its queue, such as `expired` or `delivery_limit`; `None` when no
    /// broker did.
    pub fn brokers_reason(&self) -> Option<String> {
        self.text(BROKERS_REASON)
    }

    /// When the job failed last, where that is known; else when it was first enqueued.
    pub fn age(&self) -> Option<Duration> {
        let job = self.envelope.as_ref()?;
        let failed = job.failure().map(|failure| failure.failed_at_ms);
        let Some(failed) = failed else {
            return Some(job.age());
        };
        let since = UNIX_EPOCH + Duration::from_millis(failed);
        Some(SystemTime::now().duration_since(since).unwrap_or_default())
    }

    /// All headers, as JSON.
    pub fn headers_json(&self) -> Value {
        self.headers().map(headers::to_json).unwrap_or_default()
    }

    /// The message id, as its publisher set it.
    pub fn message_id(&self) -> Option<&str> {
        self.properties.message_id().as_ref().map(|id| id.as_str())
    }

    /// The type, as its publisher set it.
    pub fn message_type(&self) -> Option<&str> {
        self.properties.kind().as_ref().map(|kind| kind.as_str())
    }

    /// Leaves it to its queue, which has it back when the pass [ends](super::Pass::end).
    pub fn keep(self) {
        self.kept.add(self.tag);
    }

    /// Takes it off its queue for good.
    pub async fn remove(self) -> Result<()> {
        let acked = self.acker.ack(BasicAckOptions::default()).await;
        match acked.map_err(broker("remove a message of", &self.queue))? {
            true => Ok(()),
            false => Err(lost(
                "remove a message of",
                &self.queue,
                "it is back on the queue",
            )),
        }
    }

    pub(super) fn properties(&self) -> &BasicProperties {
        &self.properties
    }

    pub(super) fn job(&self, action: &'static str) -> Result<&Envelope> {
        let not_a_job = || Error::broker(action, &self.queue, "the body is not a job");
        self.envelope.as_ref().ok_or_else(not_a_job)
    }

    fn text(&self, header: &str) -> Option<String> {
        match self.headers()?.inner().get(header)? {
            AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into()),
            AMQPValue::ShortString(text) => Some(text.to_string()),
            _ => None,
        }
    }

    fn headers(&self) -> Option<&FieldTable> {
        self.properties.headers().as_ref()
    }
}
