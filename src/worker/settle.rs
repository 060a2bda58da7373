//! [`Plan`]: outcome → settlement, and the one place that acts on it.

use std::{fmt, time::Duration};

use futures_lite::future;
use uuid::Uuid;

use super::{dispatch::Dispatcher, outcome::Outcome};
use crate::{
    Chain, DeadLetter, DeadLetterCause, Delivery, Envelope, Error, RetryDecision, RetryPolicy,
    Settled, Unsettled,
};

/// How long a job that could not be settled is kept, lest it comes straight back to the same end.
const PAUSE: Duration = Duration::from_secs(1);

/// What judges a run. Nothing is known of a job without a handler.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    pub(super) policy: Option<RetryPolicy>,
    pub(super) top_priority: u8,
}

/// What is to become of a job.
#[derive(Debug)]
pub(super) enum Plan {
    Ack,
    Retry {
        next: Envelope,
        delay: Duration,
        error: String,
    },
    Defer {
        next: Envelope,
        delay: Duration,
        reason: String,
    },
    DeadLetter(DeadLetter),
}

impl Plan {
    pub(super) fn of(envelope: &Envelope, outcome: Outcome, rules: Rules) -> Self {
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
                delay,
                reason,
            },
            Outcome::Undecodable(error) => {
                dead(DeadLetterCause::Decode, format!("decode error: {error}"))
            }
            Outcome::NoHandler => dead(
                DeadLetterCause::NoHandler,
                format!("no handler for job type `{}`", envelope.job_type),
            ),
        }
    }

    /// What is left when the backend answers this plan with `refusal`; `None` when it may heal.
    fn instead(&self, envelope: &Envelope, refusal: &Error, rules: Rules) -> Option<Self> {
        let why = match self {
            Self::Retry { error, .. } => error,
            Self::Defer { reason, .. } => reason,
            Self::Ack | Self::DeadLetter(_) => return None,
        };
        refusal.is_permanent().then(|| {
            let reason = format!("cannot {}: {} (after: {why})", self.verb(), Chain(refusal));
            Self::DeadLetter(rules.letter(envelope, DeadLetterCause::Refused, reason))
        })
    }

    fn failed(&self, job: &Label, next: &str, error: &Error) {
        log::error!("cannot {} {job} {next}: {}", self.verb(), Chain(error));
    }

    fn verb(&self) -> &'static str {
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

impl Dispatcher {
    /// Settles `delivery` as its run demands; a job that cannot be settled is given back.
    pub(super) async fn settle<D: Delivery>(&self, delivery: D, outcome: Outcome, rules: Rules) {
        let job = Label::of(delivery.envelope());
        let mut plan = Plan::of(delivery.envelope(), outcome, rules);
        let mut in_hand = delivery;
        loop {
            let Err(Unsettled { error, delivery }) = self.act(in_hand, &plan, &job).await else {
                return self.record(&plan, &job);
            };
            self.handle.count(|counts| &mut counts.settle_failures);
            let Some(back) = delivery else {
                return plan.failed(&job, "the broker may hand it out again", &error);
            };
            let Some(instead) = plan.instead(back.envelope(), &error, rules) else {
                plan.failed(&job, "it goes back to its queue", &error);
                return self.give_back(back, &job).await;
            };
            (in_hand, plan) = (back, instead);
        }
    }

    async fn act<D: Delivery>(&self, delivery: D, plan: &Plan, job: &Label) -> Settled<D> {
        match plan {
            Plan::Ack => delivery.ack().await,
            Plan::Retry { next, delay, .. } => delivery.retry(next, *delay).await,
            Plan::Defer { next, delay, .. } => delivery.defer(next, *delay).await,
            Plan::DeadLetter(letter) => {
                if let Some(hook) = &self.hook {
                    hook.tell(&self.runtime, job, letter.clone()).await;
                }
                delivery.dead_letter(&letter.reason).await
            }
        }
    }

    fn record(&self, plan: &Plan, job: &Label) {
        match plan {
            Plan::Ack => {
                self.handle.count(|counts| &mut counts.succeeded);
                log::debug!("{job} is done");
            }
            Plan::Retry { next, delay, error } => {
                self.handle.count(|counts| &mut counts.retried);
                let attempt = next.attempt;
                log::warn!("{job} failed, attempt {attempt} follows in {delay:?}: {error}");
            }
            Plan::Defer {
                next,
                delay,
                reason,
            } => {
                self.handle.count(|counts| &mut counts.deferred);
                let deferrals = next.deferrals;
                log::info!("{job} returns in {delay:?}, deferral {deferrals}: {reason}");
            }
            Plan::DeadLetter(letter) => {
                self.handle.count(|counts| &mut counts.dead_lettered);
                log::error!("{job} is dead-lettered: {}", letter.reason);
            }
        }
    }

    async fn give_back<D: Delivery>(&self, delivery: D, job: &Label) {
        future::or(self.runtime.sleep(PAUSE), self.handle.stopped()).await;
        match delivery.release().await {
            Ok(()) => self.handle.count(|counts| &mut counts.given_back),
            Err(Unsettled { error, .. }) => {
                self.handle.count(|counts| &mut counts.settle_failures);
                let error = Chain(&error);
                log::error!("cannot release {job}, the broker will hand it out again: {error}");
            }
        }
    }
}

fn attempts(number: u32) -> String {
    match number {
        1 => "1 attempt".into(),
        number => format!("{number} attempts"),
    }
}

/// A job as the log names it.
struct Label {
    job_type: String,
    id: Uuid,
    queue: String,
    attempt: u32,
}

impl Label {
    fn of(envelope: &Envelope) -> Self {
        Self {
            job_type: envelope.job_type.clone(),
            id: envelope.job_id,
            queue: envelope.queue.clone(),
            attempt: envelope.attempt,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            job_type,
            id,
            queue,
            attempt,
        } = self;
        write!(f, "job `{job_type}` {id} on `{queue}`, attempt {attempt},")
    }
}
