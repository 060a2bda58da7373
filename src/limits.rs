//! What AMQP and its brokers can hold; every backend keeps to it.

use std::time::Duration;

use crate::{Error, QueueConfig, Result};

/// The longest TTL of a message, in milliseconds.
pub const MAX_TTL_MS: u64 = u32::MAX as u64;
/// The longest delay, in milliseconds (about 24.8 days): its hold queue's lease is twice as long.
pub const MAX_DEFERRAL_MS: u64 = MAX_TTL_MS / 2;
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

/// How long a job may wait on `queue`, as a broker takes it: at least 1 ms, at most the maximum.
pub(crate) fn message_ttl_ms(queue: &QueueConfig) -> Option<u64> {
    let ttl = queue.message_ttl?;
    Some(millis_up(ttl).clamp(1, MAX_TTL_MS))
}
