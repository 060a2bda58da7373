//! Pure: which declarations a broker would refuse, and how long its queues let a job live.

use std::time::Duration;

use crate::{Error, QueueConfig, QueueKind, Result};

/// The longest name AMQP can carry, in bytes.
const MAX_NAME: usize = 255;

/// Refuses names no broker would take, for the queue or for one of its hold queues.
pub(super) fn check_name(queue: &str) -> Result<()> {
    if queue.starts_with("amq.") {
        let source = format!("ACCESS_REFUSED - queue name '{queue}' contains reserved prefix");
        return Err(Error::AccessRefused {
            action: "declare",
            subject: queue.into(),
            source: source.into(),
        });
    }
    let name = format!("{queue}.deferred.{}", super::MAX_DELAY.as_millis());
    match name.len() {
        ..=MAX_NAME => Ok(()),
        len => Err(Error::NameTooLong {
            name,
            len,
            max: MAX_NAME,
        }),
    }
}

/// Refuses what no broker could create.
pub(super) fn check_kind(queue: &QueueConfig) -> Result<()> {
    if queue.kind == QueueKind::Quorum && !queue.durable {
        let words = "PRECONDITION_FAILED - invalid property 'non-durable' for a quorum queue";
        return Err(Error::broker("declare", &queue.name, words));
    }
    Ok(())
}

/// Refuses to declare `current` again with other arguments.
pub(super) fn check_same(current: &QueueConfig, asked: &QueueConfig) -> Result<()> {
    let pairs = arguments(current).into_iter().zip(arguments(asked));
    for ((argument, current), (_, received)) in pairs {
        if received != current {
            let source = format!(
                "PRECONDITION_FAILED - inequivalent arg '{argument}' for queue '{}': received {received}, current is {current}",
                asked.name
            );
            return Err(Error::Precondition {
                queue: asked.name.clone(),
                argument: argument.into(),
                source: source.into(),
            });
        }
    }
    Ok(())
}

/// What a broker compares.
fn arguments(queue: &QueueConfig) -> [(&'static str, String); 4] {
    let classic = queue.kind == QueueKind::Classic;
    let priorities = queue.max_priority.filter(|_| classic);
    [
        ("durable", queue.durable.to_string()),
        (
            "x-message-ttl",
            or_none(ttl(queue).map(|ttl| ttl.as_millis())),
        ),
        ("x-max-priority", or_none(priorities)),
        ("x-queue-type", format!("{:?}", queue.kind).to_lowercase()),
    ]
}

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "none".into(), |value| value.to_string())
}

/// The time to live in the broker's terms: whole milliseconds, at least one.
pub(super) fn ttl(queue: &QueueConfig) -> Option<Duration> {
    queue.message_ttl.map(|ttl| {
        let ms = ttl.as_nanos().div_ceil(1_000_000);
        Duration::from_millis(ms.clamp(1, u32::MAX.into()) as u64)
    })
}
