//! [`Outcome`]: how one run ended.

use std::time::Duration;

use super::panic::Panic;
use crate::{Chain, JobError};

/// How one run ended. Errors are text already: whatever a user's type does is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The handler is content.
    Done,
    /// The handler failed, panicked or took too long.
    Failed(String),
    /// The handler failed and wants no other attempt.
    Fatal(String),
    /// The handler wants to be asked again later.
    Deferred {
        /// How much later.
        delay: Duration,
        /// Why.
        reason: String,
    },
    /// The payload is not what its type says.
    Undecodable(String),
    /// Nothing is registered for the type.
    NoHandler,
    /// The successor can never be stored.
    Refused(String),
}

impl Outcome {
    pub(super) fn panicked(panic: &Panic) -> Self {
        Self::Failed(format!("the handler {panic}"))
    }

    pub(super) fn timed_out(limit: Duration) -> Self {
        Self::Failed(format!("timed out after {limit:?}"))
    }
}

impl From<Result<(), JobError>> for Outcome {
    fn from(result: Result<(), JobError>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(JobError::Retryable(error)) => Self::Failed(Chain(&*error).to_string()),
            Err(JobError::Fatal(error)) => Self::Fatal(Chain(&*error).to_string()),
            Err(JobError::Deferred { delay, reason }) => Self::Deferred { delay, reason },
        }
    }
}
