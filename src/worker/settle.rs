//! The one place that settles, as the [`Plan`] says.

use std::{
    fmt, mem,
    time::{Duration, Instant},
};

use futures_lite::future;
use uuid::Uuid;

use super::{
    dispatch::Dispatcher,
    ledger::{Key, Ledger, Run},
    outcome::Outcome,
    plan::{Plan, Rules},
};
use crate::{DeadLetter, Delivery, Envelope, Unsettled};

/// How long a job that could not be settled is kept, lest it comes straight back to the same end.
const PAUSE: Duration = Duration::from_secs(1);

/// A run that has ended, and how far its settlement has come.
#[derive(Debug)]
pub(super) struct Ending {
    outcome: Outcome,
    rules: Rules,
    /// The dead-letter hook has heard of it.
    told: bool,
    /// The successor is stored: only the ack is missing.
    stored: bool,
}

impl Ending {
    pub(super) fn new(outcome: Outcome, rules: Rules) -> Self {
        Self {
            outcome,
            rules,
            told: false,
            stored: false,
        }
    }

    /// Whether it only says that the job may have crashed a process, and that is not stored.
    fn is_uncounted(&self) -> bool {
        !self.stored && matches!(self.outcome, Outcome::Uncounted { .. })
    }
}

/// What came of a settlement.
enum Fate<D> {
    Settled,
    /// The broker hands the job out again.
    Lost,
    /// The job is still in hand.
    Refused(D),
}

impl Dispatcher {
    /// Settles the job of a run that has ended, on the delivery that came last.
    ///
    /// A job that cannot be settled is given back, a lost one comes back: their endings are kept.
    pub(super) async fn conclude<D: Delivery>(
        &self,
        run: Run<D>,
        mut delivery: D,
        mut ending: Ending,
    ) {
        let job = Label::of(delivery.envelope());
        if let Some(newest) = run.newest() {
            delivery = newest;
        }
        loop {
            let subscription = delivery.subscription();
            let in_hand = match self.settle(delivery, &mut ending, &job).await {
                Fate::Settled => return run.settled(subscription, Instant::now()),
                Fate::Lost => None,
                Fate::Refused(back) => {
                    future::or(self.runtime.sleep(PAUSE), self.handle.stopped()).await;
                    Some(back)
                }
            };
            let kept = match ending.is_uncounted() {
                // An alarm that keeps a crash from being counted must not keep the job from its run.
                true => None,
                false => run.keep(ending, Instant::now()),
            };
            match kept {
                Some(again) => (delivery, ending) = again,
                None => {
                    drop(run);
                    if let Some(back) = in_hand {
                        self.give_back(back, &job).await;
                    }
                    return;
                }
            }
        }
    }

    async fn settle<D: Delivery>(
        &self,
        mut delivery: D,
        ending: &mut Ending,
        job: &Label,
    ) -> Fate<D> {
        loop {
            let plan = Plan::of(delivery.envelope(), &ending.outcome, ending.rules);
            if let Plan::DeadLetter(letter) = &plan
                && let Some(hook) = &self.hook
                && !mem::replace(&mut ending.told, true)
            {
                hook.tell(&self.runtime, job, DeadLetter::clone(letter))
                    .await;
            }
            let settled = match &plan {
                _ if ending.stored => delivery.ack().await,
                Plan::Ack => delivery.ack().await,
                Plan::Retry { next, delay, .. } => delivery.retry(next, *delay).await,
                Plan::Defer { next, delay, .. } => delivery.defer(next, *delay).await,
                Plan::Replace { next, delay } => match delay {
                    Some(delay) => delivery.defer(next, *delay).await,
                    None => delivery.replace(next).await,
                },
                Plan::DeadLetter(letter) => match letter.failure() {
                    Some(failure) => delivery.dead_letter_with(failure, &letter.reason).await,
                    None => delivery.dead_letter(&letter.reason).await,
                },
            };
            let Err(unsettled) = settled else {
                self.record(&plan, job);
                return Fate::Settled;
            };
            self.handle.count(|counts| &mut counts.settle_failures);
            ending.stored |= unsettled.stored;
            let (verb, error) = (plan.verb(), unsettled.error.chain());
            let Some(back) = unsettled.delivery else {
                log::warn!(
                    "{job}: cannot {verb}, the broker hands it out again and its outcome is kept: \
                     {error}"
                );
                return Fate::Lost;
            };
            let Some(instead) = plan.instead(&unsettled.error) else {
                log::error!("{job}: cannot {verb}, it goes back to its queue: {error}");
                return Fate::Refused(back);
            };
            (delivery, ending.outcome) = (back, instead);
        }
    }

    fn record(&self, plan: &Plan, job: &Label) {
        match plan {
            Plan::Ack => {
                self.handle.count(|counts| &mut counts.succeeded);
                log::debug!("{job}: done");
            }
            Plan::Retry { next, delay, fault } => {
                self.handle.count(|counts| &mut counts.retried);
                let (attempt, error) = (next.attempt, &fault.text);
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
            Plan::Replace { next, delay } => {
                self.handle.count(|counts| &mut counts.crashed);
                let (times, delay) = (next.crashes(), delay.unwrap_or_default());
                log::warn!(
                    "{job}: whoever had it ended without an answer, {times} times so far: stored \
                     again, to run in {delay:?}"
                );
            }
            Plan::DeadLetter(letter) => {
                self.handle.count(|counts| &mut counts.dead_lettered);
                log::error!("{job}: dead-lettered: {}", letter.reason);
            }
        }
    }

    /// Acks a job that was settled before, when the answer did not arrive.
    pub(super) async fn ack_again<D: Delivery>(&self, ledger: &Ledger<D>, delivery: D) {
        let (key, subscription) = (Key::of(delivery.envelope()), delivery.subscription());
        let job = Label::of(delivery.envelope());
        if let Err(unsettled) = delivery.ack().await {
            self.handle.count(|counts| &mut counts.settle_failures);
            let error = unsettled.error.chain();
            log::warn!("{job}: cannot ack again, the broker hands it out once more: {error}");
        }
        // It may not arrive this time either.
        ledger.settled(key, subscription, Instant::now());
    }

    async fn give_back<D: Delivery>(&self, delivery: D, job: &Label) {
        match delivery.release().await {
            Ok(()) => self.handle.count(|counts| &mut counts.given_back),
            Err(Unsettled { error, .. }) => {
                self.handle.count(|counts| &mut counts.settle_failures);
                let error = error.chain();
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
