//! [`Backoff`]: failed attempt → delay before the next.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the delay grows from one failed attempt to the next.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Backoff {
    /// No delay.
    #[default]
    None,
    /// Always the same delay.
    Fixed(Duration),
    /// `base · factor^(n-1)`, at most `max`.
    #[non_exhaustive]
    Exponential {
        /// Delay after the first failed attempt.
        base: Duration,
        /// Growth per attempt; a value that is not finite or not positive counts as 1.
        factor: f64,
        /// No delay is longer.
        max: Duration,
        /// Draw uniformly between zero and the computed delay ("full jitter").
        jitter: bool,
    },
}

impl Backoff {
    /// 1 s, doubling to 5 min, with jitter.
    pub fn exponential() -> Self {
        Self::exponential_with(Duration::from_secs(1), 2.0, Duration::from_secs(300), true)
    }

    /// Exponential growth with these numbers, taken as they are.
    pub fn exponential_with(base: Duration, factor: f64, max: Duration, jitter: bool) -> Self {
        Self::Exponential {
            base,
            factor,
            max,
            jitter,
        }
    }

    /// Delay after failed attempt number `attempt`; 1 is the first, 0 counts as 1.
    pub fn delay_for(&self, attempt: u32) -> Duration {
        self.delay_at(attempt, fastrand::f64())
    }

    /// The delay for one draw of `chance` out of 0..=1.
    fn delay_at(&self, attempt: u32, chance: f64) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::Fixed(delay) => delay,
            Self::Exponential {
                base,
                factor,
                max,
                jitter,
            } => {
                let full = grown(base, factor, max, attempt);
                if jitter {
                    Duration::try_from_secs_f64(full.as_secs_f64() * chance)
                        .map_or(full, |delay| delay.min(full))
                } else {
                    full
                }
            }
        }
    }
}

fn grown(base: Duration, factor: f64, max: Duration, attempt: u32) -> Duration {
    if base.is_zero() || !factor.is_finite() || factor <= 0.0 {
        return base.min(max);
    }
    let exponent = f64::from(attempt.saturating_sub(1));
    Duration::try_from_secs_f64(base.as_secs_f64() * factor.powf(exponent))
        .map_or(max, |delay| delay.min(max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn plain(base: Duration, factor: f64, max: Duration) -> Backoff {
        Backoff::exponential_with(base, factor, max, false)
    }

    #[test]
    fn an_exponential_backoff_doubles_up_to_its_maximum() {
        let backoff = plain(SECOND, 2.0, 10 * SECOND);

        let delays: Vec<u64> = (0..7).map(|n| backoff.delay_for(n).as_secs()).collect();

        assert_eq!(delays, [1, 1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn an_odd_factor_means_a_constant_delay() {
        for factor in [0.0, -2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(plain(SECOND, factor, 10 * SECOND).delay_for(9), SECOND);
        }
    }

    #[test]
    fn a_factor_below_one_shrinks_towards_zero() {
        let backoff = plain(SECOND, 0.5, 10 * SECOND);

        assert_eq!(backoff.delay_for(2), SECOND / 2);
        assert_eq!(backoff.delay_for(u32::MAX), Duration::ZERO);
    }

    #[test]
    fn zero_base_or_maximum_means_no_delay() {
        assert_eq!(
            plain(Duration::ZERO, 2.0, SECOND).delay_for(5),
            Duration::ZERO
        );
        assert_eq!(
            plain(SECOND, 2.0, Duration::ZERO).delay_for(5),
            Duration::ZERO
        );
    }

    fn durations() -> impl Strategy<Value = Duration> {
        (any::<u64>(), 0..1_000_000_000u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos))
    }

    proptest! {
        #[test]
        fn no_delay_exceeds_the_maximum(
            base in durations(), factor in any::<f64>(), max in durations(),
            jitter in any::<bool>(), attempt in any::<u32>(),
        ) {
            prop_assert!(Backoff::exponential_with(base, factor, max, jitter).delay_for(attempt) <= max);
        }

        #[test]
        fn jitter_draws_between_zero_and_the_full_delay(
            base in durations(), factor in 0.1..10.0f64, max in durations(),
            attempt in any::<u32>(), chance in 0.0..=1.0f64,
        ) {
            let full = plain(base, factor, max).delay_for(attempt);
            let backoff = Backoff::exponential_with(base, factor, max, true);

            prop_assert_eq!(backoff.delay_at(attempt, 0.0), Duration::ZERO);
            prop_assert!(backoff.delay_at(attempt, chance) <= full);
        }
    }
}
