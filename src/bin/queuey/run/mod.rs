//! `queuey run`.

mod control;
mod group;
mod log;
mod notify;
mod options;
mod outcome;
mod output;
mod program;

use std::{
    io::Write,
    sync::{Arc, OnceLock},
};

use futures_lite::future::or;
use queuey_rabbitmq::{
    QueueConfig, QueueSet, RabbitMqBackend, Report, Runtime, Worker, admin::Depth,
};
use serde_json::json;

use crate::{connect::Connect, failure::Failure};
use notify::Notify;
pub(crate) use options::Run;
use program::Program;

/// The queue of the command line, as the only one of its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Queue;

static QUEUE: OnceLock<QueueConfig> = OnceLock::new();

impl QueueSet for Queue {
    fn all() -> &'static [Self] {
        &[Self]
    }

    fn name(&self) -> &'static str {
        QUEUE.get().map_or("", |queue| &queue.name)
    }

    fn config(&self) -> QueueConfig {
        QUEUE.get().cloned().expect("set before there is a worker")
    }
}

impl Run {
    pub(crate) fn run(self, connect: &Connect) -> Result<(), Failure> {
        // First of all: a file that is opened now has a number that every shell can write to.
        let program = Arc::new(Program::find(&self.exec, self.timeout, self.quiet)?);
        let notify = Notify::from_env()?;
        log::to_stderr();
        Runtime::default().block_on(Box::pin(self.on_broker(connect, program, notify)))
    }

    async fn on_broker(
        &self,
        connect: &Connect,
        program: Arc<Program>,
        notify: Notify,
    ) -> Result<(), Failure> {
        if self.may_exist_only() {
            let found = self.look(connect).await?;
            found.ok_or_else(|| Failure::missing(self.queue()))?;
        }
        let backend = connect.backend().await?;
        let report = self.work(&backend, program, &notify).await?;
        self.tell(report, connect.json)
    }

    async fn look(&self, connect: &Connect) -> Result<Option<Depth>, Failure> {
        let admin = connect.admin().await?;
        let found = admin.depth(self.queue()).await;
        let closed = admin.close().await;
        let found = found?;
        closed?;
        Ok(found)
    }

    async fn work(
        &self,
        backend: &RabbitMqBackend,
        program: Arc<Program>,
        notify: &Notify,
    ) -> Result<Report, Failure> {
        QUEUE.get_or_init(|| self.config());
        let run = move |job, ctx| {
            let program = program.clone();
            async move { program.run(job, ctx).await }
        };
        let mut builder = Worker::builder(backend.clone())
            .concurrency(self.concurrency.into())
            .shutdown_grace(self.grace)
            .shutdown_deadline(self.deadline)
            .close_backend_on_shutdown(true);
        for job_type in &self.types {
            // Once per word of the command line.
            builder = builder.raw_handler_fn(Queue, job_type.clone().leak(), run.clone());
        }
        if self.types.is_empty() {
            builder = builder.fallback_fn(Queue, run);
        }
        let worker = builder.build().await?;
        let handle = worker.handle();
        let told = notify.tell(self.queue(), backend, &handle);
        let run = async { Ok(worker.run_until_signal().await?) };
        or(run, async { Err(told.await) }).await
    }

    fn tell(&self, report: Report, json: bool) -> Result<(), Failure> {
        let counts = report.counts;
        let told = [
            ("done", counts.succeeded),
            ("retried", counts.retried),
            ("deferred", counts.deferred),
            ("dead", counts.dead_lettered),
            (
                "given_back",
                counts.dropped + counts.unstarted + counts.given_back,
            ),
        ];
        if json {
            let all = told.map(|(name, count)| (name.to_owned(), count.into()));
            let all = serde_json::Map::from_iter(all);
            writeln!(std::io::stdout(), "{}", json!(all))?;
        } else {
            let all = told.map(|(name, count)| format!("{count} {}", name.replace('_', " ")));
            eprintln!("{}: {}", self.queue(), all.join(", "));
        }
        Ok(())
    }
}
