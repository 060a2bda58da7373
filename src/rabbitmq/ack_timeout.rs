//! Pure: how long the broker waits for an ack, who may say so, and what the log says about it.

use std::time::Duration;

use lapin::types::{AMQPValue, FieldTable};

use super::version::is_before;
use crate::{Error, QueueConfig, QueueKind, limits::millis_up};

/// What brokers wait unless told otherwise.
const DEFAULT: Duration = Duration::from_secs(30 * 60);

/// Some thirty years; a broker's timer has limits that it does not check.
const MAX_MS: u64 = 1 << 40;

/// Who says how long a job may be with a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetBy {
    /// The consumer, else the queue's policy, else the broker.
    Consumer,
    /// The queue's policy, else the broker.
    Policy,
    Broker,
    /// There is no such limit.
    Nobody,
}

impl SetBy {
    fn of(kind: QueueKind, version: Option<&str>) -> Self {
        let before = |other| version.is_some_and(|version| is_before(version, other));
        match kind {
            _ if before((3, 12)) => Self::Broker,
            _ if before((4, 3)) => Self::Policy,
            QueueKind::Quorum => Self::Consumer,
            QueueKind::Classic => Self::Nobody,
        }
    }
}

/// How long the broker waits for the ack of a job of `queue`: what the application says, and where it
/// says nothing, what is usual.
pub(super) fn limit(queue: &QueueConfig, version: Option<&str>) -> Option<Duration> {
    match SetBy::of(queue.kind, version) {
        SetBy::Nobody => None,
        _ => Some(queue.consumer_timeout.unwrap_or(DEFAULT)),
    }
}

/// What a consumer of `queue` asks for. Never a queue argument: where it counts it cannot be
/// changed any more, and 4.3 refuses the one a queue was declared without before.
pub(super) fn arguments(queue: &QueueConfig, version: Option<&str>) -> FieldTable {
    let mut arguments = FieldTable::default();
    if let (Some(ms), SetBy::Consumer) = (ms(queue), SetBy::of(queue.kind, version)) {
        let ms = AMQPValue::LongLongInt(ms.try_into().unwrap_or(i64::MAX));
        arguments.insert("x-consumer-timeout".into(), ms);
    }
    arguments
}

/// Why `consumer_timeout` has no effect, and what would have one.
pub(super) fn unheeded(queue: &QueueConfig, version: Option<&str>) -> Option<String> {
    let ms = ms(queue)?;
    let name = &queue.name;
    let instead = match SetBy::of(queue.kind, version) {
        SetBy::Consumer => return None,
        SetBy::Policy => format!(
            "this broker takes it from a policy only, such as `rabbitmqctl set_policy --apply-to \
             queues NAME '^{name}$' '{{\"consumer-timeout\":{ms}}}'`"
        ),
        SetBy::Broker => format!(
            "this broker takes it from `consumer_timeout = {ms}` in its rabbitmq.conf only, for \
             all queues"
        ),
        SetBy::Nobody => "this broker waits for the acks of a classic queue for ever".into(),
    };
    Some(format!(
        "`consumer_timeout` of `{name}` has no effect: {instead}"
    ))
}

/// What to do where a job was not acked in time, if that is why the subscription has ended.
pub(super) fn advice(queue: &QueueConfig, version: Option<&str>, cause: &Error) -> Option<String> {
    let set_by = SetBy::of(queue.kind, version);
    let unless = match cause {
        // All it says is that it is over.
        Error::ConsumerStopped(_) if set_by == SetBy::Consumer => "unless the queue was deleted, ",
        Error::ConsumerStopped(_) => return None,
        _ if cause
            .chain()
            .to_string()
            .contains("delivery acknowledgement on channel") =>
        {
            ""
        }
        _ => return None,
    };
    let raise = match set_by {
        SetBy::Consumer => "raise `QueueConfig::consumer_timeout`",
        SetBy::Policy => "have a policy set `consumer-timeout` of this queue on the broker",
        SetBy::Broker | SetBy::Nobody => "have `consumer_timeout` raised in rabbitmq.conf",
    };
    Some(format!(
        "{unless}a job of `{}` was here, running or waiting for its turn, for longer than the \
         broker waits for an ack: {raise}, or have jobs end sooner with a `job_timeout` or a lower \
         `prefetch`",
        queue.name
    ))
}

fn ms(queue: &QueueConfig) -> Option<u64> {
    let timeout = queue.consumer_timeout?;
    Some(millis_up(timeout).clamp(1, MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(kind: QueueKind) -> QueueConfig {
        QueueConfig::new("q")
            .kind(kind)
            .consumer_timeout(Duration::from_secs(7200))
    }

    #[test]
    fn it_is_asked_for_where_that_counts_and_else_said_to_have_no_effect() {
        use QueueKind::{Classic, Quorum};
        for (version, kind, instead) in [
            ("3.10.8", Classic, Some("consumer_timeout = 7200000")),
            ("3.13.7", Classic, Some("{\"consumer-timeout\":7200000}")),
            ("4.0.5", Quorum, Some("{\"consumer-timeout\":7200000}")),
            ("4.2.1", Classic, Some("{\"consumer-timeout\":7200000}")),
            ("4.3.6", Classic, Some("for ever")),
            ("4.3.6", Quorum, None),
        ] {
            let (queue, version) = (queue(kind), Some(version));

            let said = unheeded(&queue, version);
            let asked = arguments(&queue, version);
            match instead {
                Some(words) => assert!(said.unwrap().contains(words), "{version:?}"),
                None => assert_eq!(said, None),
            }
            assert_eq!(asked.inner().is_empty(), instead.is_some(), "{version:?}");
            let forever = instead == Some("for ever");
            assert_eq!(limit(&queue, version).is_none(), forever, "{version:?}");
        }
    }

    #[test]
    fn it_rounds_up_and_stays_in_range() {
        for (timeout, expected) in [
            (Duration::ZERO, 1),
            (Duration::from_micros(1001), 2),
            (Duration::MAX, 1 << 40),
        ] {
            let queue = queue(QueueKind::Quorum).consumer_timeout(timeout);

            let asked = arguments(&queue, Some("4.3.6"));
            let asked = asked.inner().get("x-consumer-timeout");
            assert_eq!(asked, Some(&AMQPValue::LongLongInt(expected)));
        }
    }

    #[test]
    fn nothing_is_asked_for_or_said_of_a_queue_without_it() {
        let queue = QueueConfig::new("q").kind(QueueKind::Quorum);

        assert_eq!(limit(&queue, Some("4.0.5")), Some(DEFAULT));
        assert_eq!(arguments(&queue, Some("4.3.6")), FieldTable::default());
        assert_eq!(unheeded(&queue, Some("4.0.5")), None);
    }
}
