//! [`Producer`]: job → envelope → backend.

use std::{
    fmt,
    marker::PhantomData,
    time::{Duration, SystemTime},
};

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use uuid::Uuid;

use crate::{Backend, Envelope, Job, QueueConfig, QueueSet, Result};

/// Publishes [`enqueue_all`](Producer::enqueue_all) keeps in flight.
const WINDOW: usize = 512;

/// Enqueues the jobs of one queue set. Clones share the backend.
pub struct Producer<Q, B> {
    backend: B,
    queues: PhantomData<fn(Q)>,
}

impl<Q: QueueSet, B: Backend> Producer<Q, B> {
    /// Declares every queue of the set.
    pub async fn new(backend: B) -> Result<Self> {
        let queues: Vec<QueueConfig> = Q::all().iter().map(QueueSet::config).collect();
        backend.declare(&queues).await?;
        Ok(Self::new_undeclared(backend))
    }

    /// Declares nothing: the queues must exist. Delays need a queue declared by this backend.
    pub fn new_undeclared(backend: B) -> Self {
        Self {
            backend,
            queues: PhantomData,
        }
    }

    /// The backend jobs go to.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Enqueues `job`; returns its id when the broker has confirmed it.
    pub async fn enqueue<J: Job<Queue = Q>>(&self, job: &J) -> Result<Uuid> {
        self.enqueue_with(job, EnqueueOptions::now()).await
    }

    /// Enqueues `job` at the end of its queue once `delay` has passed.
    pub async fn enqueue_after<J: Job<Queue = Q>>(&self, job: &J, delay: Duration) -> Result<Uuid> {
        self.enqueue_with(job, EnqueueOptions::after(delay)).await
    }

    /// Enqueues `job` at the end of its queue at `due`; now, if that is past.
    pub async fn enqueue_at<J: Job<Queue = Q>>(&self, job: &J, due: SystemTime) -> Result<Uuid> {
        self.enqueue_with(job, EnqueueOptions::at(due)).await
    }

    /// Enqueues `job` ahead of the backlog of its queue once `delay` has passed.
    pub async fn defer<J: Job<Queue = Q>>(&self, job: &J, delay: Duration) -> Result<Uuid> {
        self.enqueue_with(job, EnqueueOptions::deferred(delay))
            .await
    }

    /// Enqueues `job` as `options` say.
    pub async fn enqueue_with<J: Job<Queue = Q>>(
        &self,
        job: &J,
        options: EnqueueOptions,
    ) -> Result<Uuid> {
        let mut envelope = Envelope::new(job)?;
        envelope.correlation_id = options.correlation_id;
        if let Some(id) = options.job_id {
            envelope.job_id = id;
        }
        match options.when {
            When::Now => self.backend.publish(&envelope, None).await?,
            When::After(delay) => self.backend.publish(&envelope, Some(delay)).await?,
            When::Deferred(delay) => {
                envelope.priority = J::QUEUE.config().max_priority.unwrap_or(0);
                self.backend.defer(&envelope, delay).await?;
            }
        }
        Ok(envelope.job_id)
    }

    /// Enqueues every job, many in flight at a time; yields each one's id or error, in order.
    ///
    /// Jobs are taken from the iterator as confirms come back, so any number of them can pass.
    pub fn enqueue_all<J, I>(&self, jobs: I) -> impl Stream<Item = Result<Uuid>> + Send
    where
        J: Job<Queue = Q>,
        I: IntoIterator<Item = J>,
        I::IntoIter: Send,
    {
        stream::iter(jobs)
            .map(move |job| async move { self.enqueue(&job).await })
            .buffered(WINDOW)
    }
}

/// When a job is to run, and what it is tied to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnqueueOptions {
    when: When,
    correlation_id: Option<String>,
    job_id: Option<Uuid>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum When {
    #[default]
    Now,
    After(Duration),
    Deferred(Duration),
}

impl EnqueueOptions {
    /// At once.
    pub fn now() -> Self {
        Self::default()
    }

    /// At the end of the queue once `delay` has passed.
    pub fn after(delay: Duration) -> Self {
        Self {
            when: When::After(delay),
            ..Self::default()
        }
    }

    /// At the end of the queue at `due`; now, if that is past.
    pub fn at(due: SystemTime) -> Self {
        match due.duration_since(SystemTime::now()) {
            Ok(delay) => Self::after(delay),
            Err(_) => Self::now(),
        }
    }

    /// Ahead of the backlog once `delay` has passed.
    pub fn deferred(delay: Duration) -> Self {
        Self {
            when: When::Deferred(delay),
            ..Self::default()
        }
    }

    /// Ties the job to something of the caller's.
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Enqueues under this id, for instance again after an unknown outcome.
    pub fn job_id(mut self, id: Uuid) -> Self {
        self.job_id = Some(id);
        self
    }
}

impl<Q, B: Clone> Clone for Producer<Q, B> {
    fn clone(&self) -> Self {
        Self {
            backend: self.backend.clone(),
            queues: PhantomData,
        }
    }
}

impl<Q, B: fmt::Debug> fmt::Debug for Producer<Q, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("backend", &self.backend)
            .finish()
    }
}
