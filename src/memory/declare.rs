//! Pure: which declarations a broker would refuse, and how long its queues let a job live.

use std::time::Duration;

use crate::{
    Error, QueueConfig, QueueKind, Result,
    limits::{self, MAX_DEFERRAL_MS, message_ttl_ms},
};

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
    limits::check_name(&format!("{queue}.deferred.{MAX_DEFERRAL_MS}"))
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
        ("x-message-ttl", or_none(message_ttl_ms(queue))),
        ("x-max-priority", or_none(priorities)),
        ("x-queue-type", format!("{:?}", queue.kind).to_lowercase()),
    ]
}

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "none".into(), |value| value.to_string())
}

/// The time to live in the broker's terms: whole milliseconds, at least one.
pub(super) fn ttl(queue: &QueueConfig) -> Option<Duration> {
    message_ttl_ms(queue).map(Duration::from_millis)
}
