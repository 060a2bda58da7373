//! [`JobHandler`], the user's code, and [`JobContext`], what it is told about its run.

use std::{fmt, future::Future, marker::PhantomData, sync::Arc, time::Duration};

use uuid::Uuid;

use crate::{Envelope, Failure, Job, JobError, QueueSet, RetryPolicy, latch::Latch};

/// Runs the jobs of one type. State lives in `self`.
///
/// ```
/// # use queuey_rabbitmq::prelude::*;
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
/// # enum Queue { Emails }
/// # #[derive(Serialize, Deserialize, Job)]
/// # #[job(queue = Queue::Emails)]
/// # struct Welcome { user: u64 }
/// struct Mailer { sender: String }
///
/// impl JobHandler for Mailer {
///     type Job = Welcome;
///
///     async fn handle(&self, job: Welcome, ctx: JobContext) -> Result<(), JobError> {
///         println!("{} welcomes {}, attempt {}", self.sender, job.user, ctx.attempt);
///         Ok(())
///     }
/// }
/// ```
pub trait JobHandler: Send + Sync + 'static {
    /// The type this handler runs.
    type Job: Job;

    /// Runs the job once. It may run more than once: make it idempotent.
    fn handle(
        &self,
        job: Self::Job,
        ctx: JobContext,
    ) -> impl Future<Output = Result<(), JobError>> + Send;

    /// A policy for just this job, asked before each attempt; beats every other source.
    fn set_retry_policy(&self, job: &Self::Job) -> Option<RetryPolicy> {
        let _ = job;
        None
    }
}

/// What a handler is told about its run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobContext {
    /// Stable over retries and deferrals.
    pub job_id: Uuid,
    /// [`Job::NAME`], or what the handler of raw jobs is registered for.
    pub job_type: &'static str,
    /// The queue the job belongs to.
    pub queue: &'static str,
    /// This run; 1 is the first.
    pub attempt: u32,
    /// Of the policy that will judge this run.
    pub max_attempts: u32,
    /// How often the job was deferred.
    pub deferrals: u32,
    /// As delivered.
    pub priority: u8,
    /// Time since the first enqueue.
    pub age: Duration,
    /// What the caller tied the job to.
    pub correlation_id: Option<String>,
    /// Whether this run may repeat an earlier one whose end the broker never heard of.
    pub redelivered: bool,
    last_failure: Option<Arc<Failure>>,
    cancel: Latch,
}

impl JobContext {
    /// A context to test a handler with; never cancelled but by [`with_cancel`](Self::with_cancel).
    pub fn new<J: Job>(attempt: u32, max_attempts: u32) -> Self {
        Self {
            job_id: Uuid::new_v4(),
            job_type: J::NAME,
            queue: J::QUEUE.name(),
            attempt,
            max_attempts,
            deferrals: 0,
            priority: 0,
            age: Duration::ZERO,
            correlation_id: None,
            redelivered: false,
            last_failure: None,
            cancel: Latch::new(),
        }
    }

    pub(crate) fn of(
        job_type: &'static str,
        queue: &'static str,
        envelope: &Envelope,
        max_attempts: u32,
        redelivered: bool,
        cancel: Latch,
    ) -> Self {
        Self {
            job_id: envelope.job_id,
            job_type,
            queue,
            attempt: envelope.attempt,
            max_attempts,
            deferrals: envelope.deferrals,
            priority: envelope.priority,
            age: envelope.age(),
            correlation_id: envelope.correlation_id.clone(),
            redelivered,
            last_failure: envelope.failure.clone(),
            cancel,
        }
    }

    /// Sets the job id.
    pub fn with_job_id(mut self, id: Uuid) -> Self {
        self.job_id = id;
        self
    }

    /// Sets the number of deferrals.
    pub fn with_deferrals(mut self, deferrals: u32) -> Self {
        self.deferrals = deferrals;
        self
    }

    /// Sets the priority.
    pub fn with_priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the age.
    pub fn with_age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    /// Sets the correlation id.
    pub fn with_correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Sets how the last run failed.
    pub fn with_last_failure(mut self, failure: Failure) -> Self {
        self.last_failure = Some(Arc::new(failure));
        self
    }

    /// Also answers with what cancels the context, to test a handler with.
    pub fn with_cancel(mut self) -> (Self, impl FnOnce() + Send + 'static) {
        self.cancel = Latch::new();
        let cancel = self.cancel.clone();
        (self, move || cancel.raise())
    }

    /// Returns when the worker has been stopping for its `shutdown_grace`: time to come to an end.
    ///
    /// What the handler answers then counts as ever: [`JobError::deferred`] for instance has the
    /// job run again elsewhere. At `shutdown_deadline`, the handler is dropped.
    pub async fn cancelled(&self) {
        self.cancel.raised().await;
    }

    /// Whether [`cancelled`](Self::cancelled) returns at once, for handlers that loop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_raised()
    }

    /// How the last run of the job failed, and those before it, where that is known.
    pub fn last_failure(&self) -> Option<&Failure> {
        self.last_failure.as_deref()
    }

    /// Whether a retryable failure of this run is the last.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt >= self.max_attempts
    }
}

/// A closure as a [`JobHandler`]; see [`WorkerBuilder::handler_fn`](crate::WorkerBuilder::handler_fn).
pub struct FnHandler<J, F> {
    run: F,
    job: PhantomData<fn(J)>,
}

impl<J, F, R> FnHandler<J, F>
where
    J: Job,
    F: Fn(J, JobContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), JobError>> + Send,
{
    /// Runs every job of type `J` with `run`.
    pub fn new(run: F) -> Self {
        Self {
            run,
            job: PhantomData,
        }
    }
}

impl<J, F, R> JobHandler for FnHandler<J, F>
where
    J: Job,
    F: Fn(J, JobContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), JobError>> + Send,
{
    type Job = J;

    async fn handle(&self, job: J, ctx: JobContext) -> Result<(), JobError> {
        (self.run)(job, ctx).await
    }
}

impl<J: Job, F> fmt::Debug for FnHandler<J, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FnHandler").field(&J::NAME).finish()
    }
}
