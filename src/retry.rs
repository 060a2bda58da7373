//! [`RetryPolicy`]: whether a failed attempt gets another, and when.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Backoff;

/// How often a failing job is tried and how the tries are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts in all, the first included; 0 acts like 1.
    pub max_attempts: u32,
    /// The delay between them.
    pub backoff: Backoff,
}

/// Verdict on a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryDecision {
    /// Try again after `delay`.
    #[non_exhaustive]
    Retry {
        /// How long to wait.
        delay: Duration,
    },
    /// The attempts are used up.
    GiveUp,
}

impl RetryDecision {
    /// Try again after `delay`.
    pub fn retry(delay: Duration) -> Self {
        Self::Retry { delay }
    }
}

impl RetryPolicy {
    /// This many attempts, spaced by this backoff.
    pub fn new(max_attempts: u32, backoff: Backoff) -> Self {
        Self {
            max_attempts,
            backoff,
        }
    }

    /// One attempt, no retries.
    pub fn none() -> Self {
        Self::new(1, Backoff::None)
    }

    /// This many attempts with [`Backoff::exponential`].
    pub fn exponential(max_attempts: u32) -> Self {
        Self::new(max_attempts, Backoff::exponential())
    }

    /// This many attempts, always `delay` apart.
    pub fn fixed(max_attempts: u32, delay: Duration) -> Self {
        Self::new(max_attempts, Backoff::Fixed(delay))
    }

    /// Verdict on failed attempt number `attempt`; 1 is the first.
    pub fn decide(&self, attempt: u32) -> RetryDecision {
        if attempt >= self.max_attempts {
            RetryDecision::GiveUp
        } else {
            RetryDecision::retry(self.backoff.delay_for(attempt))
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_attempt_gives_up() {
        let policy = RetryPolicy::fixed(3, Duration::from_secs(2));

        assert_eq!(
            policy.decide(2),
            RetryDecision::retry(Duration::from_secs(2))
        );
        assert_eq!(policy.decide(3), RetryDecision::GiveUp);
        assert_eq!(policy.decide(u32::MAX), RetryDecision::GiveUp);
    }

    #[test]
    fn zero_attempts_act_like_one() {
        assert_eq!(
            RetryPolicy::new(0, Backoff::None).decide(1),
            RetryDecision::GiveUp
        );
    }

    #[test]
    fn the_json_shape_is_the_published_one() {
        let shapes = [
            (
                RetryPolicy::none(),
                r#"{"max_attempts":1,"backoff":"None"}"#,
            ),
            (
                RetryPolicy::fixed(2, Duration::from_millis(1500)),
                r#"{"max_attempts":2,"backoff":{"Fixed":{"secs":1,"nanos":500000000}}}"#,
            ),
            (
                RetryPolicy::exponential(5),
                r#"{"max_attempts":5,"backoff":{"Exponential":{"base":{"secs":1,"nanos":0},"factor":2.0,"max":{"secs":300,"nanos":0},"jitter":true}}}"#,
            ),
        ];
        for (policy, json) in shapes {
            assert_eq!(serde_json::to_string(&policy).unwrap(), json);
            assert_eq!(serde_json::from_str::<RetryPolicy>(json).unwrap(), policy);
        }
    }
}
