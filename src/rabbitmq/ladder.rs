//! Pure: the ladder, down which jobs of quorum queues wait; its names, arguments and routing keys.
//!
//! Level `n` keeps a job for 2ⁿ seconds. A routing key says for each level, the highest first,
//! whether the job stops there, and then which queue it goes to. Nothing here depends on an option:
//! all queues and all fleets of a vhost share the ladder.

use std::time::Duration;

use super::{
    hold::rounded_up_ms,
    topology::{Declaration, safe_hold, safe_queue},
};
use crate::{Error, QueueKind, Result, limits::longest_delay};

pub use crate::limits::{LADDER_LEVELS as LEVELS, MAX_LADDER_SECONDS as MAX_SECONDS};

/// The exchange in which every ladder ends, and to which the queues of jobs are bound.
pub const DUE: &str = "queuey.ladder.due";
/// Where waiting jobs end whose queue is gone: an exchange, and the queue that collects them.
pub const UNROUTABLE: &str = "queuey.ladder.unroutable";

/// Priorities above this are the upper one of two levels, before RabbitMQ 4.3.
const NORMAL_PRIORITY: u8 = 4;

/// Which ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ladder {
    /// For any job on a broker that expires each priority by itself.
    Common,
    /// For jobs ahead of others, on brokers that expire no job while one ahead of it still waits.
    Ahead,
}

/// A level.
#[derive(Debug)]
#[non_exhaustive]
pub struct Level {
    /// The exchange in front of it.
    pub exchange: String,
    /// Where a job stops.
    pub queue: Declaration,
    /// Routing keys of jobs that stop.
    pub stops: String,
    /// Routing keys of jobs that do not.
    pub passes: String,
    /// The exchange that comes next, either way.
    pub next: String,
}

impl Ladder {
    /// The ladder for a job of this `priority`.
    pub fn of(priority: u8, expires_by_priority: bool) -> Self {
        match priority > NORMAL_PRIORITY && !expires_by_priority {
            true => Self::Ahead,
            false => Self::Common,
        }
    }

    /// Every level, the lowest first.
    pub fn levels(self) -> impl Iterator<Item = Level> {
        (0..LEVELS).map(move |level| {
            let next = match level {
                0 => DUE.into(),
                level => self.name(level - 1),
            };
            let above = "*.".repeat((LEVELS - 1 - level) as usize);
            Level {
                exchange: self.name(level),
                queue: safe_hold(self.name(level), 1000 << level, &next),
                stops: format!("{above}1.#"),
                passes: format!("{above}0.#"),
                next,
            }
        })
    }

    /// Where a job that waits for so many `seconds`, at least one, steps on.
    pub fn exchange(self, seconds: u32) -> String {
        self.name(seconds.max(1).ilog2().min(LEVELS - 1))
    }

    fn name(self, level: u32) -> String {
        match self {
            Self::Common => format!("queuey.ladder.{level}"),
            Self::Ahead => format!("queuey.ladder.ahead.{level}"),
        }
    }
}

/// How long a job waits for `delay`: the next whole `granularity`, at least one, and from there the
/// next whole second.
///
/// # Errors
/// [`Error::DelayTooLong`] above [`MAX_SECONDS`]; a delay is never shortened.
pub fn seconds(queue: &str, delay: Duration, granularity: Duration) -> Result<u32> {
    rounded_up_ms(delay, granularity)
        .map(|ms| ms.div_ceil(1000))
        .and_then(|seconds| u32::try_from(seconds).ok())
        .filter(|&seconds| seconds <= MAX_SECONDS)
        .ok_or_else(|| Error::DelayTooLong {
            queue: queue.into(),
            delay,
            max: longest_delay(QueueKind::Quorum),
        })
}

/// The routing key of a job that goes to `queue` in so many `seconds`.
pub fn routing_key(queue: &str, seconds: u32) -> String {
    let bits = (0..LEVELS).rev().map(|level| match seconds >> level & 1 {
        0 => "0.",
        _ => "1.",
    });
    bits.chain([escaped(queue).as_str()]).collect()
}

/// What `queue` is bound to [`DUE`] with.
pub fn due_key(queue: &str) -> String {
    format!("{}{}", "*.".repeat(LEVELS as usize), escaped(queue))
}

/// The queue behind [`UNROUTABLE`].
pub fn unroutable() -> Declaration {
    safe_queue(UNROUTABLE.into())
}

// In a binding, `*` and `#` would stand for other words.
fn escaped(queue: &str) -> String {
    queue
        .replace('%', "%25")
        .replace('*', "%2A")
        .replace('#', "%23")
}

#[cfg(test)]
mod tests;
