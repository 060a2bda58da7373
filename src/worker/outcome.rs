//! [`Outcome`]: how one run ended.

use std::time::Duration;

use super::{fault::Fault, panic::Panic};
use crate::JobError;

/// How one run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The handler is content.
    Done,
    /// The handler failed, panicked or took too long.
    Failed(Box<Fault>),
    /// The handler failed and wants no other attempt.
    Fatal(Box<Fault>),
    /// The handler wants to be asked again later.
    Deferred {
        /// How much later.
        delay: Duration,
        /// Why.
        reason: String,
    },
    /// The payload is not what its type says.
    Undecodable(Box<Fault>),
    /// Nothing is registered for the type.
    NoHandler(Box<Fault>),
    /// The successor can never be stored.
    Refused(Box<Fault>),
    /// It was not run, for whoever had it before may have crashed, and that is not counted yet.
    Uncounted {
        /// With this time.
        crashes: u32,
        /// When it is to be run, if not at once.
        delay: Option<Duration>,
    },
    /// It was not run: too many processes ended with it in hand.
    CrashLoop(Box<Fault>),
}

impl Outcome {
    pub(super) fn no_handler(job_type: &str) -> Self {
        Self::NoHandler(Fault::new(format!("no handler for job type `{job_type}`")))
    }

    pub(super) fn undecodable(error: &serde_json::Error) -> Self {
        Self::Undecodable(Fault::of_error(error))
    }

    pub(super) fn panicked(panic: &Panic) -> Self {
        Self::Failed(Fault::panicked("the handler ", panic))
    }

    pub(super) fn timed_out(limit: Duration) -> Self {
        Self::Failed(Fault::timed_out(limit))
    }
}

impl From<Result<(), JobError>> for Outcome {
    fn from(result: Result<(), JobError>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(JobError::Retryable(error)) => Self::Failed(Fault::of(&error)),
            Err(JobError::Fatal(error)) => Self::Fatal(Fault::of(&error)),
            Err(JobError::Deferred { delay, reason }) => Self::Deferred { delay, reason },
        }
    }
}
