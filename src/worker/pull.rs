//! [`Puller`]: the next delivery, then a slot, then a task.

use std::{convert::Infallible, future, pin::pin, sync::Arc, time::Instant};

use async_channel::Receiver;
use async_lock::Semaphore;
use futures_lite::StreamExt;
use futures_util::{future::BoxFuture, stream::FuturesUnordered};

use super::{
    WorkerHandle,
    crash::instead_of_running,
    dispatch::Dispatcher,
    ledger::{Arrival, Key, Ledger},
};
use crate::{Backend, Delivery, Error, QueueConfig, Result, SubscriptionWatch};

/// Held by every task of a run, which waits for all of them to be gone.
pub(super) type Running = Receiver<Infallible>;

/// Starts the jobs of a worker's queues.
pub(super) struct Puller<B: Backend> {
    pub(super) backend: B,
    pub(super) queues: Vec<QueueConfig>,
    pub(super) slots: Arc<Semaphore>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) ledger: Arc<Ledger<B::Delivery>>,
    pub(super) running: Running,
}

impl<B: Backend> Puller<B> {
    /// Starts jobs until the first subscription fails.
    ///
    /// Dropped, it gives back whatever has not started.
    pub(super) async fn pull_all(&self) -> Result<Infallible> {
        let watches = self.dispatcher.handle.watches();
        let queues = self.queues.iter().zip(watches);
        let pulls = queues.map(|(queue, watch)| self.pull(queue, watch));
        match pulls.collect::<FuturesUnordered<_>>().next().await {
            Some(ended) => ended,
            // No queue at all: nothing to do until the shutdown.
            None => future::pending().await,
        }
    }

    async fn pull(&self, queue: &QueueConfig, watch: &SubscriptionWatch) -> Result<Infallible> {
        let consuming = self.backend.consume_watched(queue, watch.clone());
        let mut deliveries = consuming.await?;
        self.warn_of_long_jobs(queue);
        loop {
            let delivery = deliveries.next().await;
            let delivery = delivery.ok_or_else(|| Error::ConsumerStopped(queue.name.clone()))??;
            watch.delivered();
            let waiting = Waiting::new(delivery, &self.dispatcher.handle);
            if self.dispatcher.handle.is_shutdown() {
                // This very poll is older than the shutdown, and about to be dropped.
                return future::pending().await;
            }
            let Some(delivery) = self.recognise(waiting.start())? else {
                continue;
            };
            let waiting = Waiting::new(delivery, &self.dispatcher.handle);
            // Pull first: an idle queue must not sit on a slot another queue needs.
            let slot = self.slots.acquire_arc().await;
            if self.dispatcher.handle.is_shutdown() {
                return future::pending().await;
            }
            let delivery = waiting.start();
            if delivery.is_gone() {
                // Whoever gets it now runs it.
                continue;
            }
            let run = self.ledger.start(Key::of(delivery.envelope()));
            let dispatcher = Arc::clone(&self.dispatcher);
            // Not before its turn: what only waited is not to be counted time and again.
            let crashed = instead_of_running(&delivery, queue, dispatcher.crash_limit);
            // The job is settled or back before the slot is free.
            self.spawn(match crashed {
                None => Box::pin(async move {
                    let work = pin!(dispatcher.dispatch(run, delivery));
                    dispatcher.unless_dropped(work).await;
                    drop(slot);
                }),
                Some(ending) => Box::pin(async move {
                    let work = pin!(dispatcher.dispatch_crashed(run, delivery, ending));
                    dispatcher.unless_dropped(work).await;
                    drop(slot);
                }),
            })?;
        }
    }

    fn warn_of_long_jobs(&self, queue: &QueueConfig) {
        if let (Some(may), Some(limit)) =
            (self.dispatcher.job_timeout, self.backend.ack_timeout(queue))
            && may >= limit
        {
            log::warn!(
                "a job of `{}` may run for {may:?} (`job_timeout`), but unless the broker was told \
                 otherwise, it takes a job back that is not acked within {limit:?}: set a shorter \
                 `job_timeout`, or a longer `consumer_timeout` here and where this broker takes it \
                 from",
                queue.name
            );
        }
    }

    /// `delivery`, unless it is a job that came back while or after it ran here.
    fn recognise(&self, delivery: B::Delivery) -> Result<Option<B::Delivery>> {
        if !delivery.redelivered() {
            return Ok(Some(delivery));
        }
        let envelope = delivery.envelope();
        let (key, id) = (Key::of(envelope), envelope.job_id);
        let subscription = delivery.subscription();
        let now = Instant::now();
        match self.ledger.recognise(key, subscription, delivery, now) {
            Arrival::New(delivery) => return Ok(Some(delivery)),
            Arrival::Running => log::debug!("job {id} came back while it runs"),
            Arrival::Settled(delivery) => {
                log::debug!("job {id} came back after it was settled");
                let (dispatcher, ledger) = (Arc::clone(&self.dispatcher), Arc::clone(&self.ledger));
                self.spawn(Box::pin(async move {
                    dispatcher.ack_again(&ledger, delivery).await;
                }))?;
            }
            Arrival::Ended(run, delivery, ending) => {
                log::debug!("job {id} came back after it ran");
                let dispatcher = Arc::clone(&self.dispatcher);
                // Nothing runs, so it needs no slot.
                self.spawn(Box::pin(async move {
                    let work = pin!(dispatcher.conclude(run, delivery, ending));
                    dispatcher.unless_dropped(work).await;
                }))?;
            }
        }
        let handle = &self.dispatcher.handle;
        handle.count(|counts| &mut counts.recognised);
        Ok(None)
    }

    /// Does `work` in a task that the run of the worker waits for.
    // Boxed: the executor's code is there once, not for each kind of work.
    fn spawn(&self, work: BoxFuture<'static, ()>) -> Result<()> {
        let running = self.running.clone();
        self.dispatcher.runtime.spawn(async move {
            work.await;
            drop(running);
        })
    }
}

/// A delivery that waits for its slot. Dropped, it goes back and is counted.
struct Waiting<'a, D> {
    delivery: Option<D>,
    handle: &'a WorkerHandle,
}

impl<'a, D> Waiting<'a, D> {
    fn new(delivery: D, handle: &'a WorkerHandle) -> Self {
        Self {
            delivery: Some(delivery),
            handle,
        }
    }

    fn start(mut self) -> D {
        self.delivery.take().expect("only this takes it")
    }
}

impl<D> Drop for Waiting<'_, D> {
    fn drop(&mut self) {
        if self.delivery.take().is_some() {
            self.handle.count(|counts| &mut counts.unstarted);
        }
    }
}
