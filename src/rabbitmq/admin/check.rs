//! Questions to the broker that change nothing: who it is, what it allows, how a queue is declared.

use std::{sync::Arc, time::Duration};

use futures_lite::future::or;
use lapin::{
    BasicProperties, ErrorKind,
    options::{
        BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
    },
    types::{AMQPValue, FieldTable},
};

use super::Admin;
use crate::{
    Result,
    limits::check_name,
    rabbitmq::{channel::OpenChannel, live::Live, version::is_before},
    runtime::client,
};

/// What a connection and its broker have agreed upon.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The version of RabbitMQ, such as `4.3.6`; `None` of another broker.
    pub version: Option<String>,
    /// Seconds; 0 is none.
    pub heartbeat: u16,
    /// The largest frame, in bytes; 0 is unlimited.
    pub frame_max: u32,
}

impl Terms {
    /// Whether this is RabbitMQ, and older than `major.minor`.
    pub fn is_before(&self, major: u32, minor: u32) -> bool {
        let version = self.version.as_deref();
        version.is_some_and(|version| is_before(version, (major, minor)))
    }
}

/// What a user may do with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Declare and delete it.
    Configure,
    /// Let an exchange hand messages on to it.
    Write,
    /// Take from it.
    Read,
}

/// What the broker does with a message for a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publishing {
    /// It takes it.
    Allowed,
    /// This user may not; the broker's words.
    Refused(String),
    /// It takes none from anybody, for want of memory or disk; the broker's words.
    Blocked(String),
}

impl Admin {
    /// What the connection and its broker have agreed upon.
    pub async fn terms(&self) -> Result<Terms> {
        let live = self.live("look at the broker", "").await?;
        let agreed = live.connection.configuration();
        Ok(Terms {
            version: live.returns.version().map(Into::into),
            heartbeat: agreed.heartbeat(),
            frame_max: agreed.frame_max(),
        })
    }

    /// Whether jobs can be published; asked with a message that no queue gets.
    pub async fn publishing(&self) -> Result<Publishing> {
        let live = self.live("publish to", NOWHERE).await?;
        let channel = OpenChannel::new(live.clone(), "publish to", NOWHERE).await?;
        let published = live.ask("publish to", NOWHERE, async {
            let confirms = ConfirmSelectOptions::default();
            channel.confirm_select(confirms).await?;
            let options = BasicPublishOptions::default();
            let properties = BasicProperties::default();
            let sent = channel.basic_publish("".into(), NOWHERE.into(), options, b"", properties);
            let stored = match sent.await {
                Ok(confirm) => confirm.await.map(drop),
                Err(error) => Err(error),
            };
            if let Some((ACCESS_REFUSED, words)) = stored.as_ref().err().and_then(refusal) {
                return Ok(Publishing::Refused(words));
            }
            stored?;
            // The broker takes one message after an alarm, and then reads no more.
            live.connection.create_channel().await?;
            Ok(Publishing::Allowed)
        });
        let blocked = async {
            loop {
                match live.blocked() {
                    // The words come a moment later.
                    Some(words) if words.is_empty() => client().sleep(MOMENT).await,
                    Some(words) => return Ok(Publishing::Blocked(words)),
                    None => client().sleep(MOMENT).await,
                }
            }
        };
        or(published, blocked).await
    }

    /// Whether this user has `right` to `queue`, which may exist or not.
    pub async fn may(&self, right: Right, queue: &str) -> Result<bool> {
        check_name(queue)?;
        let live = self.live("ask for rights to", queue).await?;
        let channel = OpenChannel::new(live.clone(), "ask for rights to", queue).await?;
        // Each is refused in any case: for want of the right, or else as nonsense.
        let asked = async {
            let answer = match right {
                Right::Configure => {
                    let (options, arguments) = (durable(), table("x-expires", 0));
                    let declared = channel.queue_declare(queue.into(), options, arguments);
                    declared.await.map(drop)
                }
                Right::Write => {
                    let unbound = channel.queue_unbind(
                        queue.into(),
                        NOWHERE.into(),
                        NOWHERE.into(),
                        FieldTable::default(),
                    );
                    unbound.await
                }
                Right::Read => {
                    let options = BasicConsumeOptions::default();
                    let mut arguments = FieldTable::default();
                    arguments.insert("x-priority".into(), AMQPValue::LongString("none".into()));
                    let consumer =
                        channel.basic_consume(queue.into(), "".into(), options, arguments);
                    consumer.await.map(drop)
                }
            };
            match answer.as_ref().err().and_then(refusal) {
                Some((ACCESS_REFUSED, words)) => Ok(words.contains("exclusive")),
                Some((NOT_FOUND | PRECONDITION_FAILED, _)) => Ok(true),
                _ => answer.map(|()| true),
            }
        };
        live.ask("ask for rights to", queue, asked).await
    }

    pub(super) async fn live(&self, action: &'static str, subject: &str) -> Result<Arc<Live>> {
        self.0.open()?.publishing.get(action, subject).await
    }
}

pub(super) const NOT_FOUND: u16 = 404;
const ACCESS_REFUSED: u16 = 403;
const PRECONDITION_FAILED: u16 = 406;
/// No queue, exchange or routing key has this name.
const NOWHERE: &str = "queuey.nowhere";
const MOMENT: Duration = Duration::from_millis(10);

fn durable() -> QueueDeclareOptions {
    QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    }
}

fn table(name: &str, value: i64) -> FieldTable {
    let mut table = FieldTable::default();
    table.insert(name.into(), AMQPValue::LongLongInt(value));
    table
}

/// Code and words of the broker, if that is what `error` is.
pub(super) fn refusal(error: &lapin::Error) -> Option<(u16, String)> {
    match error.kind() {
        ErrorKind::ProtocolError(answer) => {
            Some((answer.get_id(), answer.get_message().to_string()))
        }
        _ => None,
    }
}
