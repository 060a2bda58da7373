//! Pure: the queues behind a logical queue, their names and arguments.

use lapin::types::{AMQPValue, FieldTable};

use super::ladder;
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

/// How often a job of a quorum queue may be handed out again before the broker sets it aside.
///
/// RabbitMQ 4.3 counts what a crash or a lost connection gave back, 4.0 to 4.2 also what was given
/// back on purpose: so it is far above the 20 that brokers have by default, which as many restarts
/// of a worker would use up.
pub const DELIVERY_LIMIT: i64 = 100;
/// No limit: what is returned once more is never dropped.
const UNLIMITED: i64 = -1;

/// The queue jobs are consumed from; what the broker gives up on goes to the queue `dead`.
pub fn main_queue(config: &QueueConfig, dead: Option<&str>) -> Declaration {
    let mut arguments = kind(config.kind);
    if let Some(ttl) = message_ttl_ms(config) {
        arguments.insert("x-message-ttl".into(), ms(ttl));
    }
    if let (Some(levels), QueueKind::Classic) = (config.max_priority, config.kind) {
        arguments.insert("x-max-priority".into(), AMQPValue::ShortShortUInt(levels));
    }
    match (config.kind, dead) {
        (QueueKind::Classic, _) => {}
        (QueueKind::Quorum, None) => limit(&mut arguments, UNLIMITED),
        (QueueKind::Quorum, Some(dead)) => {
            limit(&mut arguments, DELIVERY_LIMIT);
            dead_letter(&mut arguments, "");
            arguments.insert("x-dead-letter-routing-key".into(), text(dead));
        }
    }
    Declaration {
        name: config.name.clone(),
        durable: config.durable,
        arguments,
    }
}

/// Where jobs end that will not be tried again.
pub fn dead_queue(config: &QueueConfig, suffix: &str) -> Declaration {
    let name = dead_queue_name(&config.name, suffix);
    match config.kind {
        QueueKind::Classic => Declaration {
            name,
            durable: true,
            arguments: kind(config.kind),
        },
        QueueKind::Quorum => safe_queue(name),
    }
}

/// A quorum queue that keeps what it has, however often somebody looks at it.
pub(super) fn safe_queue(name: String) -> Declaration {
    let mut arguments = kind(QueueKind::Quorum);
    limit(&mut arguments, UNLIMITED);
    Declaration {
        name,
        durable: true,
        arguments,
    }
}

/// A quorum queue that hands its messages on to `exchange` after `ttl_ms`.
pub(super) fn safe_hold(name: String, ttl: u64, exchange: &str) -> Declaration {
    let mut queue = safe_queue(name);
    queue.arguments.insert("x-message-ttl".into(), ms(ttl));
    dead_letter(&mut queue.arguments, exchange);
    queue
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
    let name = &config.name;
    check_name(&dead_queue_name(name, dead_suffix))?;
    check_name(&match config.kind {
        QueueKind::Classic => hold_queue_name(name, deferred_suffix, MAX_DEFERRAL_MS),
        QueueKind::Quorum => ladder::routing_key(name, ladder::MAX_SECONDS),
    })
}

// At least once: the broker keeps a message until the next queue has confirmed it.
fn dead_letter(arguments: &mut FieldTable, exchange: &str) {
    arguments.insert("x-dead-letter-exchange".into(), text(exchange));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
}

fn limit(arguments: &mut FieldTable, times: i64) {
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(times));
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
            let queue = main_queue(&QueueConfig::new("q").message_ttl(ttl), Some("q.dead"));

            assert_eq!(
                argument(&queue, "x-message-ttl"),
                Some(&AMQPValue::LongLongInt(ms))
            );
        }
    }

    #[test]
    fn what_a_quorum_queue_gives_up_on_has_somewhere_to_go() {
        let config = QueueConfig::new("q").kind(QueueKind::Quorum);
        let limit = |queue: &Declaration| argument(queue, "x-delivery-limit").cloned();
        let unlimited = Some(AMQPValue::LongLongInt(-1));

        let queue = main_queue(&config, Some("q.dead"));
        assert_eq!(argument(&queue, "x-max-priority"), None);
        assert_eq!(limit(&queue), Some(AMQPValue::LongLongInt(DELIVERY_LIMIT)));
        let target = argument(&queue, "x-dead-letter-routing-key");
        assert_eq!(target, Some(&text("q.dead")));

        assert_eq!(limit(&main_queue(&config, None)), unlimited);
        assert_eq!(limit(&dead_queue(&config, DEAD_SUFFIX)), unlimited);
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

    #[test]
    fn a_quorum_name_fits_when_its_longest_routing_key_does() {
        let fits = |len| {
            let config = QueueConfig::new("q".repeat(len)).kind(QueueKind::Quorum);
            check_names(&config, DEAD_SUFFIX, DEFERRED_SUFFIX).is_ok()
        };

        assert!(fits(199));
        assert!(!fits(200));
    }
}
