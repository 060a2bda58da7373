//! The one place that settles, as the [`Plan`] says.

use std::{fmt, time::Duration};

use futures_lite::future;
use uuid::Uuid;

use super::{
    dispatch::Dispatcher,
    outcome::Outcome,
    plan::{Plan, Rules},
};
use crate::{Chain, Delivery, Envelope, Settled, Unsettled};

/// How long a job that could not be settled is kept, lest it comes straight back to the same end.
const PAUSE: Duration = Duration::from_secs(1);

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
            let verb = plan.verb();
            let Some(back) = delivery else {
                let error = Chain(&error);
                log::error!("{job}: cannot {verb}, the broker may hand it out again: {error}");
                return;
            };
            if let Some(instead) = plan.instead(back.envelope(), &error, rules) {
                (in_hand, plan) = (back, instead);
                continue;
            }
            log::error!(
                "{job}: cannot {verb}, it goes back to its queue: {}",
                Chain(&error)
            );
            return self.give_back(back, &job).await;
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
                log::debug!("{job}: done");
            }
            Plan::Retry { next, delay, error } => {
                self.handle.count(|counts| &mut counts.retried);
                let attempt = next.attempt;
                log::warn!("{job}: failed, attempt {attempt} follows in {delay:?}: {error}");
            }
            Plan::Defer {
                next,
                delay,
                reason,
            } => {
                self.handle.count(|counts| &mut counts.deferred);
                let deferrals = next.deferrals;
                log::info!("{job}: deferred for {delay:?}, deferral {deferrals}: {reason}");
            }
            Plan::DeadLetter(letter) => {
                self.handle.count(|counts| &mut counts.dead_lettered);
                log::error!("{job}: dead-lettered: {}", letter.reason);
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
                log::error!("{job}: cannot release, the broker will hand it out again: {error}");
            }
        }
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
        write!(f, "job `{job_type}` {id} on `{queue}`, attempt {attempt}")
    }
}
