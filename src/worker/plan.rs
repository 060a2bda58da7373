//! [`Plan`]: what is to become of a job, by the way its run ended.

use std::time::Duration;

use super::outcome::Outcome;
use crate::{DeadLetter, DeadLetterCause, Envelope, Error, RetryDecision, RetryPolicy};

/// What judges a run. Nothing is known of a job without a handler.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    pub(super) policy: Option<RetryPolicy>,
    pub(super) top_priority: u8,
}

/// What is to become of a job.
#[derive(Debug)]
pub(super) enum Plan<'a> {
    Ack,
    Retry {
        next: Envelope,
        delay: Duration,
        error: &'a str,
    },
    Defer {
        next: Envelope,
        delay: Duration,
        reason: &'a str,
    },
    DeadLetter(DeadLetter),
}

impl<'a> Plan<'a> {
    pub(super) fn of(envelope: &Envelope, outcome: &'a Outcome, rules: Rules) -> Self {
        let dead = |cause, reason| Self::DeadLetter(rules.letter(envelope, cause, reason));
        match outcome {
            Outcome::Done => Self::Ack,
            Outcome::Failed(error) => {
                match rules.policy.unwrap_or_default().decide(envelope.attempt) {
                    RetryDecision::Retry { delay } => Self::Retry {
                        next: envelope.next_attempt(),
                        delay,
                        error,
                    },
                    RetryDecision::GiveUp => dead(
                        DeadLetterCause::Exhausted,
                        format!("gave up after {}: {error}", attempts(envelope.attempt)),
                    ),
                }
            }
            Outcome::Fatal(error) => dead(DeadLetterCause::Fatal, format!("fatal error: {error}")),
            Outcome::Deferred { delay, reason } => Self::Defer {
                next: envelope.deferred(rules.top_priority),
                delay: *delay,
                reason,
            },
            Outcome::Undecodable(error) => {
                dead(DeadLetterCause::Decode, format!("decode error: {error}"))
            }
            Outcome::NoHandler => dead(
                DeadLetterCause::NoHandler,
                format!("no handler for job type `{}`", envelope.job_type),
            ),
            Outcome::Refused(reason) => dead(DeadLetterCause::Refused, reason.clone()),
        }
    }

    /// How the run ends when the backend answers with `refusal`; `None` when that may heal.
    pub(super) fn instead(&self, refusal: &Error) -> Option<Outcome> {
        let why = match self {
            Self::Retry { error, .. } => error,
            Self::Defer { reason, .. } => reason,
            Self::Ack | Self::DeadLetter(_) => return None,
        };
        refusal.is_permanent().then(|| {
            let (verb, refusal) = (self.verb(), refusal.chain());
            Outcome::Refused(format!("cannot {verb}: {refusal} (after: {why})"))
        })
    }

    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Retry { .. } => "retry",
            Self::Defer { .. } => "defer",
            Self::DeadLetter(_) => "dead-letter",
        }
    }
}

impl Rules {
    fn letter(self, envelope: &Envelope, cause: DeadLetterCause, reason: String) -> DeadLetter {
        let letter = DeadLetter::new(envelope.clone(), cause, reason);
        match self.policy {
            Some(policy) => letter.with_max_attempts(policy.max_attempts.max(1)),
            None => letter,
        }
    }
}

fn attempts(number: u32) -> String {
    match number {
        1 => "1 attempt".into(),
        number => format!("{number} attempts"),
    }
}
