//! [`Registry`]: job name → handler. The job type ends here: the one box.

use std::{collections::BTreeMap, future, sync::Arc};

use super::{
    fault::Fault,
    outcome::Outcome,
    panic::{Contained, catch},
    plan::Rules,
};
use crate::{
    Envelope, Error, Job, JobContext, JobHandler, QueueSet, Result, RetryPolicy, latch::Latch,
};

/// Every handler of a worker by each name it answers to.
pub(super) struct Registry(BTreeMap<&'static str, Arc<Entry>>);

impl Registry {
    pub(super) fn new(entries: Vec<Entry>) -> Result<Self> {
        let mut names = BTreeMap::new();
        for entry in entries.into_iter().map(Arc::new) {
            for name in [&entry.name].into_iter().chain(entry.aliases) {
                if names.insert(*name, Arc::clone(&entry)).is_some() {
                    return Err(Error::DuplicateHandler((*name).into()));
                }
            }
        }
        Ok(Self(names))
    }

    pub(super) fn get(&self, job_type: &str) -> Option<&Entry> {
        self.0.get(job_type).map(|entry| &**entry)
    }

    /// What each handler is registered for, in alphabetical order.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let names = self.0.iter().filter(|(name, entry)| **name == entry.name);
        names.map(|(name, _)| *name).collect()
    }
}

/// One handler and what is known of its jobs.
pub(super) struct Entry {
    pub(super) name: &'static str,
    aliases: &'static [&'static str],
    /// For the jobs whose handler does not say otherwise.
    pub(super) policy: RetryPolicy,
    top_priority: u8,
    handler: Box<dyn Run>,
}

impl Entry {
    pub(super) fn new<H: JobHandler>(handler: H) -> Self {
        let queue = H::Job::QUEUE.config();
        Self {
            name: H::Job::NAME,
            aliases: H::Job::ALIASES,
            policy: H::Job::retry_policy().unwrap_or(queue.retry),
            top_priority: queue.max_priority.unwrap_or(0),
            handler: Box::new(handler),
        }
    }

    /// Decodes the payload and asks for the policy; nothing runs until the answer is awaited.
    pub(super) fn attempt(
        &self,
        envelope: &Envelope,
        redelivered: bool,
        cancel: &Latch,
    ) -> Attempt<'_> {
        let (policy, run) = self
            .handler
            .attempt(envelope, redelivered, cancel, self.policy);
        Attempt {
            rules: Rules {
                policy: Some(policy),
                top_priority: self.top_priority,
            },
            run,
        }
    }
}

/// One run, ready to start.
pub(super) struct Attempt<'a> {
    pub(super) rules: Rules,
    pub(super) run: Contained<'a, Outcome>,
}

/// A [`JobHandler`], its job type forgotten.
trait Run: Send + Sync {
    fn attempt(
        &self,
        envelope: &Envelope,
        redelivered: bool,
        cancel: &Latch,
        policy: RetryPolicy,
    ) -> (RetryPolicy, Contained<'_, Outcome>);
}

impl<H: JobHandler> Run for H {
    fn attempt(
        &self,
        envelope: &Envelope,
        redelivered: bool,
        cancel: &Latch,
        policy: RetryPolicy,
    ) -> (RetryPolicy, Contained<'_, Outcome>) {
        let ends = |outcome| (policy, Contained::new(future::ready(outcome)));
        let job = match catch(|| envelope.decode::<H::Job>()) {
            Ok(Ok(job)) => job,
            Ok(Err(error)) => return ends(Outcome::undecodable(&error)),
            Err(panic) => return ends(Outcome::Undecodable(Fault::panicked("", &panic))),
        };
        let (own, job) = match catch(|| (self.set_retry_policy(&job), job)) {
            Ok(asked) => asked,
            Err(panic) => return ends(Outcome::panicked(&panic)),
        };
        let policy = own.unwrap_or(policy);
        let max_attempts = policy.max_attempts.max(1);
        let ctx = JobContext::of::<H::Job>(envelope, max_attempts, redelivered, cancel.clone());
        // Called inside, so that a panic before the first await is contained as well.
        let run = async move { self.handle(job, ctx).await.into() };
        (policy, Contained::new(run))
    }
}
