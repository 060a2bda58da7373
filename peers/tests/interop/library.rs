//! [`Library`]: what a process does, whichever library it is built on.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_lite::future;
use queuey_rabbitmq::{Chain, Uuid};

use crate::{
    jobs::Job,
    support::{Broker, until, within},
    watched::Watched,
};

pub const SECOND: Duration = Duration::from_secs(1);

/// A queue as both libraries can declare it.
#[derive(Debug, Clone)]
pub struct Queue {
    pub name: String,
    pub durable: bool,
    pub message_ttl: Option<Duration>,
    pub max_priority: u8,
}

/// How a run ends.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Done,
    Retry,
    Defer,
    Fatal,
}

/// What a handler saw of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub note: String,
    pub job_id: Uuid,
    pub job_type: &'static str,
    pub queue: &'static str,
    pub attempt: u32,
    pub max_attempts: u32,
    pub deferrals: u32,
    pub priority: u8,
    pub correlation_id: Option<String>,
}

pub trait Library: 'static {
    const NAME: &'static str;

    /// Declares the queues of the set and enqueues `job`.
    async fn enqueue<J: Job>(broker: &Broker, job: &J, correlation_id: &str) -> Uuid;
    /// Works until one job is settled; a second one that has started goes back.
    async fn run_one<J: Job>(broker: &Broker, end: End) -> Run;
    async fn declare(broker: &Broker, queue: &Queue) -> Result<(), String>;
    /// Declares `queue`, then enqueues into it after a second, and once more deferred by a second.
    async fn hold(broker: &Broker, queue: &Queue);
    /// Reads a body and writes it again.
    fn rewrite(body: &[u8]) -> Vec<u8>;
}

pub struct Theirs;

impl Theirs {
    async fn connect(broker: &Broker) -> Arc<queuey::RabbitMqBackend> {
        Arc::new(queuey::RabbitMqBackend::connect(&broker.url).await.unwrap())
    }

    fn config(queue: &Queue) -> queuey::QueueConfig {
        let config = queuey::QueueConfig::new(&queue.name)
            .durable(queue.durable)
            .max_priority(queue.max_priority);
        match queue.message_ttl {
            Some(ttl) => config.message_ttl(ttl),
            None => config,
        }
    }
}

impl Library for Theirs {
    const NAME: &'static str = "theirs";

    async fn enqueue<J: Job>(broker: &Broker, job: &J, correlation_id: &str) -> Uuid {
        let backend = Self::connect(broker).await;
        let producer = queuey::Producer::<J::Queues, _>::new(backend)
            .await
            .unwrap();
        let options = queuey::EnqueueOptions::now().correlation_id(correlation_id);
        producer.enqueue_with(job, options).await.unwrap()
    }

    async fn run_one<J: Job>(broker: &Broker, end: End) -> Run {
        use queuey::{Backend, JobContext, JobError};

        let backend = Arc::new(Watched::new(Self::connect(broker).await));
        let runs = Runs::default();
        let seen = runs.clone();
        let handler = queuey::FnHandler::<J, _>::new(move |job: J, ctx: JobContext| {
            let is_first = seen.saw(Run {
                note: job.note().into(),
                job_id: ctx.job_id,
                job_type: ctx.job_type,
                queue: ctx.queue,
                attempt: ctx.attempt,
                max_attempts: ctx.max_attempts,
                deferrals: ctx.deferrals,
                priority: ctx.priority,
                correlation_id: ctx.correlation_id,
            });
            async move {
                if !is_first {
                    // Left to the next worker.
                    future::pending::<()>().await;
                }
                match end {
                    End::Done => Ok(()),
                    End::Retry => Err(JobError::retryable_msg("busy")),
                    End::Defer => Err(JobError::deferred(SECOND)),
                    End::Fatal => Err(JobError::fatal_msg("no such customer")),
                }
            }
        });
        let worker = queuey::Worker::<J::Queues, _>::builder(backend.clone())
            .queues(&[<J as queuey::Job>::QUEUE])
            .concurrency(1)
            .handler(handler)
            .build()
            .await
            .unwrap();
        let ended = async { panic!("{:?}", worker.run().await) };
        let settled = until("a settlement", async || backend.settled() == 1);
        within("a run", future::or(ended, settled)).await;
        backend.close().await.unwrap();
        runs.first()
    }

    async fn declare(broker: &Broker, queue: &Queue) -> Result<(), String> {
        use queuey::Backend;

        let backend = Self::connect(broker).await;
        let declared = backend.declare(&[Self::config(queue)]).await;
        declared.map_err(|error| Chain(&error).to_string())
    }

    async fn hold(broker: &Broker, queue: &Queue) {
        use queuey::{Backend, Envelope};

        let backend = Self::connect(broker).await;
        backend.declare(&[Self::config(queue)]).await.unwrap();
        let envelope = Envelope::raw("any", &queue.name, serde_json::json!(1));
        backend.publish(&envelope, Some(SECOND)).await.unwrap();
        let deferred = envelope.deferred(queue.max_priority);
        backend.defer(&deferred, SECOND).await.unwrap();
    }

    fn rewrite(body: &[u8]) -> Vec<u8> {
        let envelope = queuey::Envelope::from_bytes(body).unwrap();
        envelope.to_bytes().unwrap()
    }
}

pub struct Ours;

impl Ours {
    async fn connect(broker: &Broker) -> queuey_rabbitmq::RabbitMqBackend {
        broker.backend().await
    }

    fn config(queue: &Queue) -> queuey_rabbitmq::QueueConfig {
        let config = queuey_rabbitmq::QueueConfig::new(&queue.name)
            .durable(queue.durable)
            .max_priority(queue.max_priority);
        match queue.message_ttl {
            Some(ttl) => config.message_ttl(ttl),
            None => config,
        }
    }
}

impl Library for Ours {
    const NAME: &'static str = "ours";

    async fn enqueue<J: Job>(broker: &Broker, job: &J, correlation_id: &str) -> Uuid {
        let backend = Self::connect(broker).await;
        let producer = queuey_rabbitmq::Producer::<J::Queues, _>::new(backend);
        let options = queuey_rabbitmq::EnqueueOptions::now().correlation_id(correlation_id);
        let producer = producer.await.unwrap();
        producer.enqueue_with(job, options).await.unwrap()
    }

    async fn run_one<J: Job>(broker: &Broker, end: End) -> Run {
        use queuey_rabbitmq::{Backend, JobContext, JobError};

        let (backend, runs) = (Self::connect(broker).await, Runs::default());
        let seen = runs.clone();
        let handler = move |job: J, ctx: JobContext| {
            let is_first = seen.saw(Run {
                note: job.note().into(),
                job_id: ctx.job_id,
                job_type: ctx.job_type,
                queue: ctx.queue,
                attempt: ctx.attempt,
                max_attempts: ctx.max_attempts,
                deferrals: ctx.deferrals,
                priority: ctx.priority,
                correlation_id: ctx.correlation_id,
            });
            async move {
                if !is_first {
                    // Left to the next worker.
                    future::pending::<()>().await;
                }
                match end {
                    End::Done => Ok(()),
                    End::Retry => Err(JobError::retryable("busy")),
                    End::Defer => Err(JobError::deferred(SECOND)),
                    End::Fatal => Err(JobError::fatal("no such customer")),
                }
            }
        };
        let worker = queuey_rabbitmq::Worker::<J::Queues, _>::builder(backend.clone())
            .queues(&[<J as queuey_rabbitmq::Job>::QUEUE])
            .concurrency(1)
            .handler_fn(handler)
            .build()
            .await
            .unwrap();
        let handle = worker.handle();
        let ended = async { panic!("{:?}", worker.run().await) };
        let settled = until("a settlement", async || {
            let counts = handle.counts();
            counts.succeeded + counts.retried + counts.deferred + counts.dead_lettered == 1
        });
        within("a run", future::or(ended, settled)).await;
        backend.close().await.unwrap();
        runs.first()
    }

    async fn declare(broker: &Broker, queue: &Queue) -> Result<(), String> {
        use queuey_rabbitmq::Backend;

        let backend = Self::connect(broker).await;
        let declared = backend.declare(&[Self::config(queue)]).await;
        declared.map_err(|error| Chain(&error).to_string())
    }

    async fn hold(broker: &Broker, queue: &Queue) {
        use queuey_rabbitmq::{Backend, Envelope};

        let backend = Self::connect(broker).await;
        backend.declare(&[Self::config(queue)]).await.unwrap();
        let payload = serde_json::value::to_raw_value(&1).unwrap();
        let envelope = Envelope::raw("any", &queue.name, payload);
        backend.publish(&envelope, Some(SECOND)).await.unwrap();
        let deferred = envelope.deferred(queue.max_priority);
        backend.defer(&deferred, SECOND).await.unwrap();
    }

    fn rewrite(body: &[u8]) -> Vec<u8> {
        let envelope = queuey_rabbitmq::Envelope::from_bytes(body).unwrap();
        envelope.to_bytes()
    }
}

/// The runs a handler has seen.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<Run>>>);

impl Runs {
    /// Answers whether it is the first.
    fn saw(&self, run: Run) -> bool {
        let mut runs = self.0.lock().unwrap();
        runs.push(run);
        runs.len() == 1
    }

    fn first(&self) -> Run {
        self.0.lock().unwrap()[0].clone()
    }
}
