//! [`DeadLetter`] and the [`DeadLetterHook`] that hears of it.

use std::{fmt, future::Future};

use crate::{DeadLetterCause, Envelope, Failure};

/// Hears of every job the worker gives up on.
///
/// Called before the job is moved, so possibly more than once for one job; it cannot veto.
pub trait DeadLetterHook: Send + Sync + 'static {
    /// Reports one job. A panic is logged and changes nothing.
    fn on_dead_letter(&self, letter: DeadLetter) -> impl Future<Output = ()> + Send;
}

/// A job that will not be tried again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// As delivered, with what is known of its failure.
    pub envelope: Envelope,
    /// What ended it.
    pub cause: DeadLetterCause,
    /// In words, as the dead-letter queue will carry it.
    pub reason: String,
    /// Of the policy in force, when a handler is known.
    pub max_attempts: Option<u32>,
}

impl DeadLetter {
    /// A letter to test a hook with.
    pub fn new(envelope: Envelope, cause: DeadLetterCause, reason: impl Into<String>) -> Self {
        Self {
            envelope,
            cause,
            reason: reason.into(),
            max_attempts: None,
        }
    }

    /// Sets the attempts the policy allowed.
    pub fn with_max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// How the job failed, this time and before.
    pub fn failure(&self) -> Option<&Failure> {
        self.envelope.failure()
    }

    /// How often the job ran, this run included.
    pub fn attempts(&self) -> u32 {
        self.envelope.attempt
    }
}

/// A closure as a [`DeadLetterHook`].
pub struct FnDeadLetterHook<F>(F);

impl<F, R> FnDeadLetterHook<F>
where
    F: Fn(DeadLetter) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send,
{
    /// Reports to `hear`.
    pub fn new(hear: F) -> Self {
        Self(hear)
    }
}

impl<F, R> DeadLetterHook for FnDeadLetterHook<F>
where
    F: Fn(DeadLetter) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send,
{
    async fn on_dead_letter(&self, letter: DeadLetter) {
        (self.0)(letter).await;
    }
}

impl<F> fmt::Debug for FnDeadLetterHook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FnDeadLetterHook")
    }
}
