//! What AMQP and its brokers can hold; every backend keeps to it.

use std::time::Duration;

use crate::{Error, QueueConfig, QueueKind, Result};

/// The longest TTL of a message, in milliseconds.
pub const MAX_TTL_MS: u64 = u32::MAX as u64;
/// The longest delay on a classic queue, in milliseconds (about 24.8 days): its hold queue's lease is twice as long.
pub const MAX_DEFERRAL_MS: u64 = MAX_TTL_MS / 2;
/// How many levels the waits of quorum queues are made of; level `n` lasts 2ⁿ seconds.
pub const LADDER_LEVELS: u32 = 28;
/// The longest delay on a quorum queue, in seconds (about 8.5 years).
pub const MAX_LADDER_SECONDS: u32 = (1 << LADDER_LEVELS) - 1;
/// The longest name AMQP can carry, in bytes.
pub const MAX_NAME_BYTES: usize = 255;

/// Refuses a name that would not fit.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.len() > MAX_NAME_BYTES {
        return Err(Error::NameTooLong {
            len: name.len(),
            max: MAX_NAME_BYTES,
            name: name.into(),
        });
    }
    Ok(())
}

/// Whole milliseconds, rounded up.
pub(crate) fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The longest delay on a queue of this kind.
pub(crate) fn longest_delay(kind: QueueKind) -> Duration {
    match kind {
        QueueKind::Classic => Duration::from_millis(MAX_DEFERRAL_MS),
        QueueKind::Quorum => Duration::from_secs(MAX_LADDER_SECONDS.into()),
    }
}

/// How long a job may wait on `queue`, as a broker takes it: at least 1 ms, at most the maximum.
pub(crate) fn message_ttl_ms(queue: &QueueConfig) -> Option<u64> {
    let ttl = queue.message_ttl?;
    Some(millis_up(ttl).clamp(1, MAX_TTL_MS))
}

/// At most `limit` bytes of `text`, cut between characters.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}
