//! [`WorkerBuilder`]: which queues, which handlers, and how they are run.

use std::{
    collections::HashMap, fmt, future::Future, marker::PhantomData, sync::Arc, time::Duration,
};

use async_lock::{RwLock, Semaphore};

use super::{
    Worker, WorkerHandle, crash,
    dispatch::Dispatcher,
    drain::Patience,
    hook::Hook,
    place,
    registry::{Entry, Registry},
};
use crate::{
    Backend, DeadLetterHook, Envelope, FnHandler, Job, JobContext, JobError, JobHandler,
    QueueConfig, QueueSet, Result, RetryPolicy, Runtime,
};

/// Sets up a [`Worker`]. Of two calls to one setter, the last wins.
#[must_use = "nothing is declared or consumed before `build`"]
pub struct WorkerBuilder<Q, B> {
    backend: B,
    queues: Vec<Q>,
    handlers: Vec<(Q, Entry)>,
    fallback: Option<(Q, Entry)>,
    queue_overrides: HashMap<Q, RetryPolicy>,
    job_overrides: HashMap<&'static str, RetryPolicy>,
    concurrency: Option<usize>,
    job_timeout: Option<Duration>,
    crash_limit: Option<u32>,
    hook: Option<Hook>,
    runtime: Option<Runtime>,
    close_backend: bool,
    patience: Patience,
    panic_hook: bool,
}

impl<Q: QueueSet, B: Backend> WorkerBuilder<Q, B> {
    pub(super) fn new(backend: B) -> Self {
        Self {
            backend,
            queues: Q::all().to_vec(),
            handlers: Vec::new(),
            fallback: None,
            queue_overrides: HashMap::new(),
            job_overrides: HashMap::new(),
            concurrency: None,
            job_timeout: None,
            crash_limit: Some(crash::LIMIT),
            hook: None,
            runtime: None,
            close_backend: false,
            patience: Patience::default(),
            panic_hook: true,
        }
    }

    /// Runs the jobs of one type with `handler`, whichever queue they come from.
    ///
    /// A job without a handler is dead-lettered: give every worker of a queue a handler for each
    /// type that travels on it.
    pub fn handler<H: JobHandler<Job: Job<Queue = Q>>>(mut self, handler: H) -> Self {
        self.handlers.push((H::Job::QUEUE, Entry::new(handler)));
        self
    }

    /// Runs the jobs of type `J` with a closure.
    pub fn handler_fn<J, F, R>(self, run: F) -> Self
    where
        J: Job<Queue = Q>,
        F: Fn(J, JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), JobError>> + Send,
    {
        self.handler(FnHandler::new(run))
    }

    /// Runs the jobs of the type of this name with a closure that gets them undecoded, for programs
    /// that know the type at run time alone.
    ///
    /// `queue` is where they belong, for the retry policy and the level deferred jobs return at.
    pub fn raw_handler_fn<F, R>(mut self, queue: Q, job_type: &'static str, run: F) -> Self
    where
        F: Fn(Envelope, JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), JobError>> + Send,
    {
        let entry = Entry::raw(job_type, queue, run);
        self.handlers.push((queue, entry));
        self
    }

    /// Like [`raw_handler_fn`](Self::raw_handler_fn), for the jobs of every type that has no
    /// handler; [`JobContext::job_type`] is `*`, the envelope has the type.
    pub fn fallback_fn<F, R>(mut self, queue: Q, run: F) -> Self
    where
        F: Fn(Envelope, JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), JobError>> + Send,
    {
        self.fallback = Some((queue, Entry::raw("*", queue, run)));
        self
    }

    /// Consumes only these queues; all of the set by default.
    pub fn queues(mut self, queues: &[Q]) -> Self {
        self.queues.clear();
        for queue in queues {
            if !self.queues.contains(queue) {
                self.queues.push(*queue);
            }
        }
        self
    }

    /// How many jobs may run at once, at least 1; by default as many as are prefetched.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = Some(jobs);
        self
    }

    /// The policy of the jobs that belong to `queue`, in this worker; beats their attributes.
    pub fn retry_override(mut self, queue: Q, policy: RetryPolicy) -> Self {
        self.queue_overrides.insert(queue, policy);
        self
    }

    /// The policy of the jobs of type `J`, in this worker; beats that of the queue.
    pub fn job_retry_override<J: Job<Queue = Q>>(mut self, policy: RetryPolicy) -> Self {
        self.job_overrides.insert(J::NAME, policy);
        self
    }

    /// Tells `hook` of every job that is given up. It has 30 s to take notice.
    pub fn on_dead_letter(mut self, hook: impl DeadLetterHook) -> Self {
        self.hook = Some(Hook::new(hook));
        self
    }

    /// How long one run may take; no limit by default.
    ///
    /// Past it, the handler is dropped at its next await and the run counts as failed, retryable.
    pub fn job_timeout(mut self, limit: Duration) -> Self {
        self.job_timeout = Some(limit);
        self
    }

    /// How many processes may end with one attempt of a job in hand before it is dead-lettered as a
    /// crash loop ([`DeadLetterCause::CrashLoop`](crate::DeadLetterCause::CrashLoop)), at least 1; 10
    /// by default, `None` to hand it out for ever.
    ///
    /// The attempt of a job whose handler aborts the process, is killed for want of memory or the
    /// like never ends, so that `max_attempts` does not see it. The limit is apart from that and
    /// should be well above it: a broker cannot tell a crash from a restart, so every job that
    /// a process had in hand is counted, also what it had not started. An attempt that ends, a
    /// deferral and a replay begin anew.
    ///
    /// A classic queue does not count, and a quorum queue before RabbitMQ 4.3 counts what was given
    /// back as well. There, a job that may have crashed a process is first stored
    /// again, with the count in the header `x-crashes`, ahead of the backlog where the queue has
    /// priorities and behind it where not; under an alarm of the broker, which stores nothing then,
    /// it is run uncounted. From the third time on it waits before it is run,
    /// on every queue, a random time of up to 8 s, then 16 s, at last about a minute: so jobs that
    /// were in hand together part, and only what crashes by itself reaches the limit.
    pub fn crash_limit(mut self, times: impl Into<Option<u32>>) -> Self {
        self.crash_limit = times.into();
        self
    }

    /// Where handlers run; by default where [`Backend::runtime`](crate::Backend::runtime) says.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Whether [`Worker::run`] closes the backend when it ends; `false` by default.
    pub fn close_backend_on_shutdown(mut self, close: bool) -> Self {
        self.close_backend = close;
        self
    }

    /// How long a worker that stops waits for its handlers before
    /// [`JobContext::cancelled`] tells them to end; 20 s by default.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.patience.grace = grace;
        self
    }

    /// How long a worker that stops waits for its handlers, `shutdown_grace` included, before it
    /// drops them and gives their jobs back; 25 s by default.
    ///
    /// [`Worker::run`] returns by then or within 4 s more, whatever the backend does: in time for
    /// the 30 s that Kubernetes leaves between SIGTERM and SIGKILL. [`Duration::MAX`] is no limit.
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Self {
        self.patience.deadline = deadline;
        self
    }

    /// Whether [`build`](Self::build) sees to it that the place of a panic is noted; `true` by
    /// default.
    ///
    /// Only a panic hook is told the place. So the first `build` of the process puts one before
    /// the hook that is there, which is called as ever. A hook that is set later replaces both,
    /// and places are not known any more.
    pub fn panic_hook(mut self, chain: bool) -> Self {
        self.panic_hook = chain;
        self
    }

    /// Declares the queues consumed and nothing else.
    ///
    /// # Errors
    /// [`Error::DuplicateHandler`](crate::Error::DuplicateHandler) before anything is declared;
    /// else whatever the backend has against a declaration.
    pub async fn build(self) -> Result<Worker<Q, B>> {
        self.log_inert_overrides();
        if self.panic_hook {
            place::watch();
        }
        let mut entries = Vec::with_capacity(self.handlers.len());
        for (queue, mut entry) in self.handlers {
            let job = self.job_overrides.get(entry.name);
            if let Some(policy) = job.or_else(|| self.queue_overrides.get(&queue)) {
                entry.policy = *policy;
            }
            entries.push(entry);
        }
        let fallback = self.fallback.map(|(queue, mut entry)| {
            if let Some(policy) = self.queue_overrides.get(&queue) {
                entry.policy = *policy;
            }
            entry
        });
        let registry = Registry::new(entries, fallback)?;
        let queues: Vec<QueueConfig> = self.queues.iter().map(QueueSet::config).collect();
        self.backend.declare(&queues).await?;
        let prefetched = || queues.iter().map(|queue| usize::from(queue.prefetch)).sum();
        let concurrency = self.concurrency.unwrap_or_else(prefetched).max(1);
        let runtime = self.runtime.unwrap_or_else(|| self.backend.runtime());
        let handle = WorkerHandle::new(&queues);
        Ok(Worker {
            backend: self.backend,
            queues,
            concurrency,
            slots: Arc::new(Semaphore::new(concurrency)),
            dispatcher: Arc::new(Dispatcher {
                registry,
                hook: self.hook,
                job_timeout: self.job_timeout,
                crash_limit: self.crash_limit,
                replacing: RwLock::new(()),
                runtime,
                handle,
            }),
            close_backend: self.close_backend,
            patience: self.patience,
            set: PhantomData,
        })
    }

    fn log_inert_overrides(&self) {
        let handled = |name| self.handlers.iter().any(|(_, entry)| entry.name == name);
        for name in self.job_overrides.keys().filter(|name| !handled(**name)) {
            log::debug!("a retry policy is set for job type `{name}`, which has no handler");
        }
        let all = || self.handlers.iter().chain(&self.fallback);
        let served = |queue| all().any(|(of, _)| of == queue);
        for queue in self.queue_overrides.keys().filter(|queue| !served(*queue)) {
            let queue = queue.name();
            log::debug!("a retry policy is set for queue `{queue}`, whose jobs have no handler");
        }
    }
}

impl<Q: fmt::Debug, B> fmt::Debug for WorkerBuilder<Q, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.handlers.iter().chain(&self.fallback);
        let handlers: Vec<_> = all.map(|(_, entry)| entry.name).collect();
        f.debug_struct("WorkerBuilder")
            .field("queues", &self.queues)
            .field("handlers", &handlers)
            .field("concurrency", &self.concurrency)
            .field("job_timeout", &self.job_timeout)
            .field("has_dead_letter_hook", &self.hook.is_some())
            .field("closes_backend", &self.close_backend)
            .finish()
    }
}
