//! A whole application written against queuey; its backend is the only line that differs.

use std::sync::Arc;

use futures_lite::future;
use queuey::{
    Backend, FnHandler, JobContext, JobError, QueueConfig, QueueSet, RetryPolicy, Worker,
};
use serde::{Deserialize, Serialize};

use crate::{
    peer::{Library, Peer, SECOND},
    support::{pause, until, within},
    watched::Watched,
};

/// A queue set whose name is made at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Named(&'static str);

impl QueueSet for Named {
    fn all() -> &'static [Self] {
        &[]
    }

    fn name(&self) -> &'static str {
        self.0
    }

    fn config(&self) -> QueueConfig {
        QueueConfig::new(self.0)
    }
}

#[derive(Serialize, Deserialize)]
enum Errand {
    Succeed,
    FailOnce,
    DeferOnce,
    Die,
}

impl queuey::Job for Errand {
    type Queue = Named;
    const NAME: &'static str = "errand";
    const QUEUE: Named = Named("any");
}

async fn run(errand: Errand, ctx: JobContext) -> Result<(), JobError> {
    match errand {
        Errand::FailOnce if ctx.attempt == 1 => Err(JobError::retryable_msg("busy")),
        Errand::DeferOnce if ctx.deferrals == 0 => Err(JobError::deferred(SECOND)),
        Errand::Die => Err(JobError::fatal_msg("no such customer")),
        _ => Ok(()),
    }
}

pub async fn an_application_runs(peer: Peer) {
    let url = &peer.broker.url;
    match peer.library {
        Library::Published => {
            let backend = Arc::new(queuey::RabbitMqBackend::connect(url).await.unwrap());
            application(peer, backend).await;
        }
        Library::Ours => {
            let backend = Arc::new(
                queuey_rabbitmq::RabbitMqBackend::connect(url)
                    .await
                    .unwrap(),
            );
            application(peer, backend).await;
        }
    }
}

async fn application(peer: Peer, backend: Arc<impl Backend>) {
    let queue = Named(peer.broker.name().leak());
    backend.declare(&[queue.config()]).await.unwrap();
    let errands = [
        Errand::Succeed,
        Errand::FailOnce,
        Errand::DeferOnce,
        Errand::Die,
    ];
    for errand in errands {
        enqueue(&*backend, queue, errand).await;
    }

    let backend = Arc::new(Watched::new(backend));
    let worker = Worker::<Named, _>::builder(backend.clone())
        .queues(&[queue])
        .job_retry_override::<Errand>(RetryPolicy::fixed(2, SECOND))
        .handler(FnHandler::<Errand, _>::new(run))
        .build()
        .await
        .unwrap();
    let handle = worker.handle();
    let stop = async {
        until("six settlements", async || backend.settled() == 6).await;
        handle.shutdown();
    };
    let (ended, ()) = within("the end", future::zip(worker.run(), stop)).await;

    ended.unwrap();
    assert_eq!(handle.settle_failures(), 0);
    backend.close().await.unwrap();
    peer.until_ready(queue.name(), 0).await;
    peer.until_ready(&format!("{}.dead", queue.name()), 1).await;
}

pub async fn a_job_that_runs_at_the_shutdown_is_settled(peer: Peer) {
    let backend = queuey_rabbitmq::RabbitMqBackend::connect(&peer.broker.url).await;
    let backend = Arc::new(backend.unwrap());
    let queue = Named(peer.broker.name().leak());
    queuey::Backend::declare(&*backend, &[queue.config()])
        .await
        .unwrap();
    enqueue(&*backend, queue, Errand::Succeed).await;

    let (started, starts) = async_channel::bounded(1);
    let (finish, finished) = async_channel::bounded::<()>(1);
    let handler = FnHandler::<Errand, _>::new(move |_, _| {
        let (started, finished) = (started.clone(), finished.clone());
        async move {
            started.send(()).await.unwrap();
            finished.recv().await.unwrap();
            Ok(())
        }
    });
    let worker = Worker::<Named, _>::builder(backend.clone())
        .queues(&[queue])
        .handler(handler)
        .build()
        .await
        .unwrap();
    let handle = worker.handle();
    let stop = async {
        starts.recv().await.unwrap();
        handle.shutdown();
        pause(SECOND / 10).await;
        finish.send(()).await.unwrap();
    };
    let (ended, ()) = within("the end", future::zip(worker.run(), stop)).await;

    ended.unwrap();
    assert_eq!(handle.settle_failures(), 0);
    queuey::Backend::close(&*backend).await.unwrap();
    peer.until_ready(queue.name(), 0).await;
}

async fn enqueue(backend: &impl Backend, queue: Named, errand: Errand) {
    let mut envelope = queuey::Envelope::new(&errand).unwrap();
    envelope.queue = queue.name().into();
    backend.publish(&envelope, None).await.unwrap();
}
