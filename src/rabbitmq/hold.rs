//! Pure: delay → how long the hold queue keeps a job.

use std::time::Duration;

use crate::{
    Error, Result,
    limits::{MAX_DEFERRAL_MS, millis_up},
};

/// The TTL in milliseconds of the hold for `delay`: the next whole `granularity`, at least one.
///
/// # Errors
/// [`Error::DelayTooLong`] above [`MAX_DEFERRAL_MS`]; a delay is never shortened.
pub fn ttl_ms(queue: &str, delay: Duration, granularity: Duration) -> Result<u64> {
    match rounded_up_ms(delay, granularity) {
        Some(ttl) if ttl <= MAX_DEFERRAL_MS => Ok(ttl),
        _ => Err(Error::DelayTooLong {
            queue: queue.into(),
            delay,
            max: Duration::from_millis(MAX_DEFERRAL_MS),
        }),
    }
}

/// `delay` in milliseconds, up to the next whole `granularity`, at least one; `None` beyond what
/// can be counted.
pub(super) fn rounded_up_ms(delay: Duration, granularity: Duration) -> Option<u64> {
    let step = millis_up(granularity).max(1);
    let steps = millis_up(delay).div_ceil(step).max(1);
    steps.checked_mul(step)
}

/// How long after sending the declare a hold publish may be confirmed and still be safe.
///
/// The broker deletes a hold queue two TTLs after its declare, and the job needs the second one.
pub(super) fn lease(ttl_ms: u64) -> Duration {
    Duration::from_millis(ttl_ms) * 3 / 4
}

/// The hold for a link that needed `round_trip` from declare to confirm: `ttl_ms`, doubled until
/// that time fits its lease.
pub(super) fn ttl_for_link(ttl_ms: u64, round_trip: Duration) -> u64 {
    let mut ttl = ttl_ms;
    while lease(ttl) <= round_trip && ttl < MAX_DEFERRAL_MS {
        ttl = (2 * ttl).min(MAX_DEFERRAL_MS);
    }
    ttl
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_delay_rounds_up_to_the_granularity() {
        for (delay, granularity, ttl) in [
            (Duration::ZERO, SECOND, 1000),
            (Duration::from_nanos(1), SECOND, 1000),
            (SECOND, SECOND, 1000),
            (Duration::from_millis(1001), SECOND, 2000),
            (Duration::from_micros(1500), Duration::ZERO, 2),
            (Duration::from_millis(7), Duration::from_millis(5), 10),
        ] {
            assert_eq!(ttl_ms("q", delay, granularity).unwrap(), ttl);
        }
    }

    #[test]
    fn a_delay_beyond_the_limit_is_refused() {
        let limit = Duration::from_millis(MAX_DEFERRAL_MS);
        let step = Duration::from_millis(1);

        assert!(ttl_ms("q", limit, step).is_ok());
        for (delay, granularity) in [
            (limit + step, step),
            (limit, SECOND),
            (Duration::MAX, SECOND),
            (SECOND, Duration::MAX),
        ] {
            assert!(matches!(
                ttl_ms("q", delay, granularity),
                Err(Error::DelayTooLong { .. })
            ));
        }
    }

    #[test]
    fn a_slow_link_gets_a_longer_hold() {
        assert_eq!(ttl_for_link(1000, Duration::from_millis(5)), 1000);
        assert_eq!(ttl_for_link(1000, Duration::from_millis(750)), 2000);
        assert_eq!(ttl_for_link(1, Duration::from_millis(3)), 8);
        assert_eq!(ttl_for_link(1, Duration::MAX), MAX_DEFERRAL_MS);
    }

    proptest! {
        #[test]
        fn no_hold_is_shorter_than_the_delay(secs in 0..3_000_000u64, nanos in 0..1_000_000_000u32, step in 0..100_000u64) {
            let delay = Duration::new(secs, nanos);

            match ttl_ms("q", delay, Duration::from_millis(step)) {
                Ok(ttl) => prop_assert!(Duration::from_millis(ttl) >= delay && ttl <= MAX_DEFERRAL_MS),
                Err(_) => prop_assert!(millis_up(delay) + step > MAX_DEFERRAL_MS),
            }
        }
    }
}
