//! [`ReconnectPolicy`]: when to try again what the broker or the network has ended.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use crate::{Backoff, Error, error::panic_text};

/// Paces the attempts to come back.
pub trait ReconnectPolicy: fmt::Debug + Send + Sync + 'static {
    /// How long to wait before the next attempt; asked before each one, the first too. `None`
    /// gives up, as does a panic: from then on publishes answer with an error and workers end with
    /// one.
    fn next_delay(&self, attempt: &Attempt<'_>) -> Option<Duration>;
}

/// What `policy` says, if there is one; or how it panicked, which gives up too.
pub(super) fn next_delay(
    policy: Option<&dyn ReconnectPolicy>,
    attempt: &Attempt<'_>,
) -> Result<Option<Duration>, String> {
    let Some(policy) = policy else {
        return Ok(None);
    };
    // The task that asks is the only one that could bring the connection back.
    catch_unwind(AssertUnwindSafe(|| policy.next_delay(attempt))).map_err(|panic| {
        let text = panic_text(&*panic).unwrap_or("no text");
        format!("the reconnect policy panicked: {text}")
    })
}

/// An attempt that is about to be made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Attempt<'a> {
    /// How many have failed since the last success.
    pub failures: u32,
    /// Why the last one failed.
    pub error: Option<&'a Error>,
    /// What is to come back.
    pub rebuilding: Rebuilding,
}

/// What is to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rebuilding {
    /// A connection.
    Connection,
    /// A subscription, on a connection that is alive.
    Consumer,
}

/// Tries at once, then with growing pauses.
///
/// By default it never gives up, and the pauses grow from 500 ms, doubling to 30 s, with jitter.
#[derive(Debug, Clone)]
pub struct BackoffPolicy {
    max_attempts: Option<u32>,
    backoff: Backoff,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        let (base, max) = (Duration::from_millis(500), Duration::from_secs(30));
        Self {
            max_attempts: None,
            backoff: Backoff::exponential_with(base, 2.0, max, true),
        }
    }
}

impl BackoffPolicy {
    /// The default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up after so many failures in a row; 0 never tries.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// The pauses from the second attempt on.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }
}

impl ReconnectPolicy for BackoffPolicy {
    fn next_delay(&self, attempt: &Attempt<'_>) -> Option<Duration> {
        if self.max_attempts.is_some_and(|max| attempt.failures >= max) {
            return None;
        }
        Some(match attempt.failures {
            0 => Duration::ZERO,
            failures => self.backoff.delay_for(failures),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(policy: &BackoffPolicy, failures: u32) -> Option<Duration> {
        policy.next_delay(&Attempt {
            failures,
            error: None,
            rebuilding: Rebuilding::Connection,
        })
    }

    #[test]
    fn the_first_attempt_does_not_wait_and_none_waits_longer_than_half_a_minute() {
        let policy = BackoffPolicy::new();

        assert_eq!(delay(&policy, 0), Some(Duration::ZERO));
        for failures in [1, 2, 7, 1000, u32::MAX] {
            assert!(delay(&policy, failures).unwrap() <= Duration::from_secs(30));
        }
    }

    #[test]
    fn it_gives_up_when_told_to() {
        let policy = BackoffPolicy::new().max_attempts(2);

        assert!(delay(&policy, 1).is_some());
        assert_eq!(delay(&policy, 2), None);
        assert_eq!(delay(&BackoffPolicy::new().max_attempts(0), 0), None);
    }
}
