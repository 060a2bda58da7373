//! [`Worker`]: consumes queues and runs their jobs.

mod builder;
mod crash;
mod dispatch;
mod drain;
mod fault;
mod hook;
mod ledger;
mod outcome;
mod panic;
mod place;
mod plan;
mod pull;
mod registry;
mod settle;
#[cfg(feature = "signals")]
mod signals;
mod stop;

use std::{fmt, marker::PhantomData, sync::Arc, time::Instant};

use async_lock::Semaphore;
use futures_lite::future::or;

pub use builder::WorkerBuilder;
pub use stop::{Counts, Report, StopReason, WorkerHandle};

use crate::{Backend, QueueConfig, QueueSet, Result, RetryPolicy, Runtime};
use dispatch::Dispatcher;
use drain::Patience;
use pull::Puller;

/// Consumes queues and runs their jobs, so many at a time.
///
/// ```no_run
/// # use queuey_rabbitmq::{prelude::*, WorkerHandle};
/// # async fn example<Q: QueueSet, B: Backend, H: JobHandler<Job: Job<Queue = Q>>>(
/// #     backend: B, mailer: H, on_ctrl_c: impl Fn(WorkerHandle),
/// # ) -> Result<(), Error> {
/// let worker = Worker::builder(backend).handler(mailer).concurrency(8).build().await?;
/// on_ctrl_c(worker.handle());
/// let report = worker.run().await?;
/// println!("{} jobs done", report.counts.succeeded);
/// # Ok(()) }
/// ```
pub struct Worker<Q, B> {
    backend: B,
    queues: Vec<QueueConfig>,
    concurrency: usize,
    slots: Arc<Semaphore>,
    dispatcher: Arc<Dispatcher>,
    close_backend: bool,
    patience: Patience,
    set: PhantomData<fn(Q)>,
}

impl<Q: QueueSet, B: Backend> Worker<Q, B> {
    /// A worker to be set up.
    pub fn builder(backend: B) -> WorkerBuilder<Q, B> {
        WorkerBuilder::new(backend)
    }

    /// Stops and watches this worker.
    pub fn handle(&self) -> WorkerHandle {
        self.dispatcher.handle.clone()
    }

    /// The queues consumed.
    pub fn queues(&self) -> &[QueueConfig] {
        &self.queues
    }

    /// How many jobs may run at once.
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// The policy for jobs that go by this name; their handler may still set another.
    pub fn retry_policy_for(&self, job_type: &str) -> Option<RetryPolicy> {
        let entry = self.dispatcher.registry.get(job_type)?;
        Some(entry.policy)
    }

    /// Runs jobs until [`WorkerHandle::shutdown`] or until a subscription ends.
    ///
    /// Jobs that have not started then go back to their queues at once, those that run are waited
    /// for as [`shutdown`](WorkerHandle::shutdown) says, whatever it was that ended. Dropped, the
    /// future gives back the running ones too.
    ///
    /// # Errors
    /// What ended a subscription. [`ConsumerStopped`](crate::Error::ConsumerStopped) also when the
    /// backend was closed before the shutdown was asked for.
    pub async fn run(self) -> Result<Report> {
        let handle = self.handle();
        // A run that is dropped ends its tasks.
        let _end = DropRunning(&handle);
        log::info!("{self:?} starts");
        let (alive, running) = async_channel::bounded(1);
        let (ended, end) = async_channel::bounded(1);
        let puller = Puller {
            backend: self.backend.clone(),
            ledger: Arc::default(),
            queues: self.queues,
            slots: self.slots,
            dispatcher: self.dispatcher.clone(),
            running,
        };
        // Beside the handlers, so that a delivery starts its job without waking another thread.
        self.dispatcher.runtime.spawn(async move {
            let handle = &puller.dispatcher.handle;
            let pulled = async {
                let Err(error) = puller.pull_all().await;
                let _ = ended.try_send(error);
            };
            or(or(handle.stopped(), handle.aborted()), pulled).await;
        })?;
        let stopped = async {
            handle.stopped().await;
            Ok(())
        };
        let failed = async { Err(end.recv().await.unwrap_or_else(|_| Runtime::gone())) };
        let mut result = or(stopped, failed).await;
        if handle.is_shutdown() {
            // What else ended in that moment was to end anyway.
            result = Ok(());
        }
        // The subscriptions and each task hold one: when all are gone, all is settled.
        let (patience, runtime, stopped) =
            (self.patience, &self.dispatcher.runtime, Instant::now());
        patience.drain(runtime, &handle, &alive).await;
        if self.close_backend
            && let Err(error) = patience.close(runtime, &self.backend, stopped).await
        {
            log::warn!("cannot close the backend: {}", error.chain());
            result = result.and(Err(error));
        }
        let report = Report::new(StopReason::Shutdown, handle.counts());
        match &result {
            Ok(()) => log::info!("the worker stops as asked: {:?}", report.counts),
            Err(error) => log::error!("the worker stops: {}: {:?}", error.chain(), report.counts),
        }
        result.map(|()| report)
    }
}

struct DropRunning<'a>(&'a WorkerHandle);

impl Drop for DropRunning<'_> {
    fn drop(&mut self) {
        self.0.drop_running();
    }
}

impl<Q, B> fmt::Debug for Worker<Q, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues: Vec<_> = self.queues.iter().map(|queue| &queue.name).collect();
        f.debug_struct("Worker")
            .field("queues", &queues)
            .field("handlers", &self.dispatcher.registry.names())
            .field("concurrency", &self.concurrency)
            .field("job_timeout", &self.dispatcher.job_timeout)
            .field("has_dead_letter_hook", &self.dispatcher.hook.is_some())
            .field("closes_backend", &self.close_backend)
            .finish()
    }
}
