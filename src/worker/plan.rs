//! [`Plan`]: what is to become of a job, by the way its run ended.

use std::time::Duration;

use super::{fault::Fault, outcome::Outcome};
use crate::{DeadLetter, DeadLetterCause, Envelope, Error, RetryDecision, RetryPolicy};

/// What judges a run. Nothing is known of a job without a handler.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    pub(super) policy: Option<RetryPolicy>,
    pub(super) top_priority: u8,
}

/// What is to become of a job.
// Boxed: every job would carry what few need.
#[derive(Debug)]
pub(super) enum Plan<'a> {
    Ack,
    Retry {
        next: Box<Envelope>,
        delay: Duration,
        fault: &'a Fault,
    },
    Defer {
        next: Box<Envelope>,
        delay: Duration,
        reason: &'a str,
    },
    Replace {
        next: Box<Envelope>,
        delay: Option<Duration>,
    },
    DeadLetter(Box<DeadLetter>),
}

impl<'a> Plan<'a> {
    pub(super) fn of(envelope: &Envelope, outcome: &'a Outcome, rules: Rules) -> Self {
        let dead = |cause, fault: &Fault, reason| {
            let job = envelope.clone();
            let job = job.with_failure(&fault.on_top_of(envelope, Some(cause)));
            Self::DeadLetter(Box::new(rules.letter(job, cause, reason)))
        };
        match outcome {
            Outcome::Done => Self::Ack,
            Outcome::Failed(fault) => {
                match rules.policy.unwrap_or_default().decide(envelope.attempt) {
                    RetryDecision::Retry { delay } => {
                        let failure = fault.on_top_of(envelope, None);
                        Self::Retry {
                            next: Box::new(envelope.next_attempt().with_failure(&failure)),
                            delay,
                            fault,
                        }
                    }
                    RetryDecision::GiveUp => dead(
                        DeadLetterCause::Exhausted,
                        fault,
                        format!(
                            "gave up after {}: {}",
                            attempts(envelope.attempt),
                            fault.text
                        ),
                    ),
                }
            }
            Outcome::Fatal(fault) => dead(
                DeadLetterCause::Fatal,
                fault,
                format!("fatal error: {}", fault.text),
            ),
            Outcome::Deferred { delay, reason } => Self::Defer {
                next: Box::new(envelope.deferred(rules.top_priority)),
                delay: *delay,
                reason,
            },
            Outcome::Undecodable(fault) => dead(
                DeadLetterCause::Decode,
                fault,
                format!("decode error: {}", fault.text),
            ),
            Outcome::NoHandler(fault) => {
                dead(DeadLetterCause::NoHandler, fault, fault.text.clone())
            }
            Outcome::Refused(fault) => dead(DeadLetterCause::Refused, fault, fault.text.clone()),
            Outcome::Uncounted { crashes, delay } => Self::Replace {
                next: Box::new(envelope.crashed(*crashes, rules.top_priority)),
                delay: *delay,
            },
            Outcome::CrashLoop(fault) => {
                dead(DeadLetterCause::CrashLoop, fault, fault.text.clone())
            }
        }
    }

    /// How the run ends when the backend answers with `refusal`; `None` when that may heal.
    pub(super) fn instead(&self, refusal: &Error) -> Option<Outcome> {
        if !refusal.is_permanent() {
            return None;
        }
        let (verb, told) = (self.verb(), refusal.chain());
        let words = |why: &str| format!("cannot {verb}: {told} (after: {why})");
        Some(Outcome::Refused(match self {
            Self::Retry { fault, .. } => fault.in_words(words(&fault.text)),
            Self::Defer { reason, .. } => Fault::of_error(refusal).in_words(words(reason)),
            Self::Replace { next, .. } => {
                let why = format!("crash {}", next.crashes());
                Fault::of_error(refusal).in_words(words(&why))
            }
            Self::Ack | Self::DeadLetter(_) => return None,
        }))
    }

    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Retry { .. } => "retry",
            Self::Defer { .. } => "defer",
            Self::Replace { .. } => "count the crash and store again",
            Self::DeadLetter(_) => "dead-letter",
        }
    }
}

impl Rules {
    fn letter(self, job: Envelope, cause: DeadLetterCause, reason: String) -> DeadLetter {
        let letter = DeadLetter::new(job, cause, reason);
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
