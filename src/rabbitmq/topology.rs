//! Pure: the queues behind a logical queue, their names and arguments.

use lapin::types::{AMQPValue, FieldTable};

use crate::{
    QueueConfig, QueueKind, Result,
    limits::{check_name, message_ttl_ms},
};

pub use crate::limits::{MAX_DEFERRAL_MS, MAX_NAME_BYTES, MAX_TTL_MS};

/// What follows a queue's name in the name of its dead-letter queue.
pub const DEAD_SUFFIX: &str = ".dead";
/// What follows a queue's name in the names of its hold queues, before `.` and the milliseconds.
pub const DEFERRED_SUFFIX: &str = ".deferred";
/// A queue as it is declared.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Declaration {
    /// The name on the broker.
    pub name: String,
    /// Whether it survives a broker restart.
    pub durable: bool,
    /// Its arguments.
    pub arguments: FieldTable,
}

/// The dead-letter queue of `queue`.
pub fn dead_queue_name(queue: &str, suffix: &str) -> String {
    format!("{queue}{suffix}")
}

/// The hold queue of `queue` for waits of `ttl_ms`.
pub fn hold_queue_name(queue: &str, suffix: &str, ttl_ms: u64) -> String {
    format!("{queue}{suffix}.{ttl_ms}")
}

/// The queue jobs are consumed from.
pub fn main_queue(config: &QueueConfig) -> Declaration {
    let mut arguments = kind(config.kind);
    if let Some(ttl) = message_ttl_ms(config) {
        arguments.insert("x-message-ttl".into(), ms(ttl));
    }
    if let (Some(levels), QueueKind::Classic) = (config.max_priority, config.kind) {
        arguments.insert("x-max-priority".into(), AMQPValue::ShortShortUInt(levels));
    }
    Declaration {
        name: config.name.clone(),
        durable: config.durable,
        arguments,
    }
}

/// Where jobs end that will not be tried again.
pub fn dead_queue(config: &QueueConfig, suffix: &str) -> Declaration {
    Declaration {
        name: dead_queue_name(&config.name, suffix),
        durable: true,
        arguments: kind(config.kind),
    }
}

/// Where jobs for `queue` wait `ttl_ms`. A pure function of the name, so that no two processes
/// ever disagree; the broker deletes it when it was not declared again for two TTLs.
pub fn hold_queue(queue: &str, durable: bool, suffix: &str, ttl_ms: u64) -> Declaration {
    let mut arguments = kind(QueueKind::Classic);
    arguments.insert("x-message-ttl".into(), ms(ttl_ms));
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(queue));
    arguments.insert("x-expires".into(), ms(2 * ttl_ms));
    Declaration {
        name: hold_queue_name(queue, suffix, ttl_ms),
        durable,
        arguments,
    }
}

/// Refuses a queue one of whose names would not fit.
pub fn check_names(config: &QueueConfig, dead_suffix: &str, deferred_suffix: &str) -> Result<()> {
    check_name(&dead_queue_name(&config.name, dead_suffix))?;
    check_name(&hold_queue_name(
        &config.name,
        deferred_suffix,
        MAX_DEFERRAL_MS,
    ))
}

// Always sent: where it is left out, a vhost's default type would decide.
fn kind(kind: QueueKind) -> FieldTable {
    let mut arguments = FieldTable::default();
    let kind = match kind {
        QueueKind::Classic => "classic",
        QueueKind::Quorum => "quorum",
    };
    arguments.insert("x-queue-type".into(), text(kind));
    arguments
}

fn ms(value: u64) -> AMQPValue {
    AMQPValue::LongLongInt(value.try_into().unwrap_or(i64::MAX))
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn argument<'a>(queue: &'a Declaration, name: &str) -> Option<&'a AMQPValue> {
        queue.arguments.inner().get(name)
    }

    #[test]
    fn a_ttl_rounds_up_and_stays_in_range() {
        for (ttl, ms) in [
            (Duration::from_nanos(1), 1),
            (Duration::from_micros(1001), 2),
            (Duration::MAX, 4_294_967_295),
        ] {
            let queue = main_queue(&QueueConfig::new("q").message_ttl(ttl));

            assert_eq!(
                argument(&queue, "x-message-ttl"),
                Some(&AMQPValue::LongLongInt(ms))
            );
        }
    }

    #[test]
    fn a_quorum_queue_has_no_max_priority() {
        let queue = main_queue(&QueueConfig::new("q").kind(QueueKind::Quorum));

        assert_eq!(argument(&queue, "x-max-priority"), None);
        assert_eq!(argument(&queue, "x-queue-type"), Some(&text("quorum")));
    }

    #[test]
    fn a_hold_queue_returns_to_its_queue_and_outlives_its_jobs() {
        let hold = hold_queue("q", true, DEFERRED_SUFFIX, 1500);

        assert_eq!(hold.name, "q.deferred.1500");
        assert_eq!(argument(&hold, "x-message-ttl"), Some(&ms(1500)));
        assert_eq!(argument(&hold, "x-expires"), Some(&ms(3000)));
        assert_eq!(argument(&hold, "x-dead-letter-exchange"), Some(&text("")));
        assert_eq!(
            argument(&hold, "x-dead-letter-routing-key"),
            Some(&text("q"))
        );
    }

    #[test]
    fn a_name_fits_when_its_longest_hold_name_does() {
        let fits = |len| {
            check_names(
                &QueueConfig::new("q".repeat(len)),
                DEAD_SUFFIX,
                DEFERRED_SUFFIX,
            )
            .is_ok()
        };

        assert!(fits(235));
        assert!(!fits(236));
    }
}
