//! [`Registry`]: job name → handler. The job type ends here: the one box.

use std::{
    collections::BTreeMap,
    future::{self, Future},
    sync::Arc,
};

use super::{
    fault::Fault,
    outcome::Outcome,
    panic::{Contained, catch},
    plan::Rules,
};
use crate::{
    Envelope, Error, Job, JobContext, JobError, JobHandler, QueueSet, Result, RetryPolicy,
    latch::Latch,
};

/// Every handler of a worker by each name it answers to, and the one for all other names.
pub(super) struct Registry {
    names: BTreeMap<&'static str, Arc<Entry>>,
    fallback: Option<Entry>,
}

impl Registry {
    pub(super) fn new(entries: Vec<Entry>, fallback: Option<Entry>) -> Result<Self> {
        let mut names = BTreeMap::new();
        for entry in entries.into_iter().map(Arc::new) {
            for name in [&entry.name].into_iter().chain(entry.aliases) {
                if names.insert(*name, Arc::clone(&entry)).is_some() {
                    return Err(Error::DuplicateHandler((*name).into()));
                }
            }
        }
        Ok(Self { names, fallback })
    }

    pub(super) fn get(&self, job_type: &str) -> Option<&Entry> {
        let named = self.names.get(job_type).map(|entry| &**entry);
        named.or(self.fallback.as_ref())
    }

    /// What each handler is registered for, in alphabetical order.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let own = |(name, entry): &(&&'static str, &Arc<Entry>)| **name == entry.name;
        let names = self.names.iter().filter(own).map(|(name, _)| *name);
        names
            .chain(self.fallback.as_ref().map(|it| it.name))
            .collect()
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

    /// A handler of jobs that are not decoded.
    pub(super) fn raw<Q, F, R>(name: &'static str, queue: Q, run: F) -> Self
    where
        Q: QueueSet,
        F: Fn(Envelope, JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), JobError>> + Send,
    {
        let config = queue.config();
        Self {
            name,
            aliases: &[],
            policy: config.retry,
            top_priority: config.max_priority.unwrap_or(0),
            handler: Box::new(Raw {
                name,
                queue: queue.name(),
                run,
            }),
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
        let (name, queue) = (H::Job::NAME, H::Job::QUEUE.name());
        let cancel = cancel.clone();
        let ctx = JobContext::of(name, queue, envelope, max_attempts, redelivered, cancel);
        // Called inside, so that a panic before the first await is contained as well.
        let run = async move { self.handle(job, ctx).await.into() };
        (policy, Contained::new(run))
    }
}

/// A closure that takes jobs as they are.
struct Raw<F> {
    name: &'static str,
    queue: &'static str,
    run: F,
}

impl<F, R> Run for Raw<F>
where
    F: Fn(Envelope, JobContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), JobError>> + Send,
{
    fn attempt(
        &self,
        envelope: &Envelope,
        redelivered: bool,
        cancel: &Latch,
        policy: RetryPolicy,
    ) -> (RetryPolicy, Contained<'_, Outcome>) {
        let (most, cancel) = (policy.max_attempts.max(1), cancel.clone());
        let ctx = JobContext::of(self.name, self.queue, envelope, most, redelivered, cancel);
        let envelope = envelope.clone();
        let run = async move { (self.run)(envelope, ctx).await.into() };
        (policy, Contained::new(run))
    }
}
