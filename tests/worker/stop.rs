//! How a worker ends.

use async_channel::{Receiver, Sender};
use queuey_rabbitmq::{Backend, Error, JobError, StopReason};

use crate::*;

/// A worker for one job at a time; each says when it starts and ends when it may.
struct Gated {
    worker: Worker<Queue, MemoryBackend>,
    started: Receiver<u32>,
    /// Dropped, it lets every job end.
    gate: Sender<()>,
}

impl Gated {
    async fn new(backend: &MemoryBackend) -> Self {
        let (start, started) = async_channel::unbounded();
        let (gate, opened) = async_channel::bounded(1);
        let worker = builder(backend)
            .concurrency(1)
            .handler_fn(move |job: Work, _| {
                let (start, opened) = (start.clone(), opened.clone());
                async move {
                    start.send(job.0).await?;
                    let _: Result<(), _> = opened.recv().await;
                    Ok(())
                }
            });
        let worker = worker.build().await.unwrap();
        Self {
            worker,
            started,
            gate,
        }
    }
}

fn spawnable<T: Send>(future: T) -> T {
    future
}

facts! {
    async fn a_shutdown_lets_the_running_job_end_and_gives_back_the_rest(backend) {
        let Gated { worker, started, gate } = Gated::new(&backend).await;
        let handle = worker.handle();
        enqueue(&backend, (1..=5).map(Work)).await;

        let (report, ()) = future::zip(worker.run(), async {
            started.recv().await.unwrap();
            until(|| backend.unsettled("main") == 2).await;
            handle.shutdown();
            // The job that had been pulled is back while the other still runs.
            until(|| backend.pending("main").len() == 4).await;
            assert_eq!(backend.unsettled("main"), 1);
            drop(gate);
        })
        .await;

        let report = report.unwrap();
        assert_eq!((report.reason, report.counts.succeeded), (StopReason::Shutdown, 1));
        assert_eq!(backend.pending("main").len(), 4);
        assert_eq!(backend.acked("main").len(), 1);
        assert!(started.is_empty());
    }

    async fn a_shutdown_before_the_run_ends_it_at_once(backend) {
        let worker = builder(&backend).build().await.unwrap();
        let handle = worker.handle();
        enqueue(&backend, [Work(1)]).await;

        handle.shutdown();
        handle.shutdown();
        let report = worker.run().await.unwrap();

        assert!(handle.is_shutdown());
        assert_eq!(report.reason, StopReason::Shutdown);
        assert_eq!(backend.pending("main").len(), 1);
    }

    async fn a_dropped_run_gives_back_the_running_job(backend) {
        let Gated { worker, started, gate } = Gated::new(&backend).await;
        enqueue(&backend, [Work(1), Work(2)]).await;

        let run = async {
            worker.run().await.unwrap();
        };
        future::or(run, async {
            started.recv().await.unwrap();
        })
        .await;

        until(|| backend.pending("main").len() == 2).await;
        until(|| gate.receiver_count() == 0).await;
    }

    async fn a_worker_without_queues_waits_for_its_shutdown(backend) {
        let worker = builder(&backend).queues(&[]).build().await.unwrap();
        let handle = worker.handle();

        let run = worker.run();
        let mut run = std::pin::pin!(run);

        assert!(future::poll_once(&mut run).await.is_none());
        handle.shutdown();
        assert!(run.await.is_ok());
    }

    async fn a_held_job_survives_the_worker(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Twice, _| async { Err(JobError::retryable("no")) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Twice(1)]).await;

        during(worker, backend.idle()).await;

        assert_eq!(backend.held("other")[0].0.attempt, 2);
    }

    async fn the_backend_stays_open(backend) {
        let worker = builder(&backend).build().await.unwrap();

        during(worker, async {}).await;

        assert!(!backend.is_closed());
    }

    async fn the_backend_is_closed_on_request(backend) {
        let worker = builder(&backend).close_backend_on_shutdown(true);
        let worker = worker.build().await.unwrap();

        during(worker, async {}).await;

        assert!(backend.is_closed());
    }

    async fn a_closed_backend_ends_the_run_once_the_running_job_has_ended(backend) {
        let Gated { worker, started, gate } = Gated::new(&backend).await;
        let handle = worker.handle();
        enqueue(&backend, [Work(1)]).await;

        let (result, ()) = future::zip(worker.run(), async {
            started.recv().await.unwrap();
            backend.close().await.unwrap();
            drop(gate);
        })
        .await;

        assert!(matches!(result, Err(Error::ConsumerStopped(_))), "{result:?}");
        assert_eq!(handle.counts().succeeded, 1);
    }

    async fn a_backend_closed_after_the_shutdown_is_no_error(backend) {
        let worker = builder(&backend).build().await.unwrap();
        let handle = worker.handle();

        let (result, ()) = future::zip(worker.run(), async {
            future::yield_now().await;
            handle.shutdown();
            backend.close().await.unwrap();
        })
        .await;

        assert!(result.is_ok());
    }

    async fn a_worker_that_cannot_consume_ends(backend) {
        let worker = builder(&backend).build().await.unwrap();
        backend.close().await.unwrap();

        let result = worker.run().await;

        assert!(matches!(result, Err(Error::Closed)), "{result:?}");
    }

    async fn a_run_can_be_spawned(backend) {
        let worker = builder(&backend).build().await.unwrap();
        worker.handle().shutdown();

        let run = spawnable(worker.run());

        assert!(run.await.is_ok());
    }
}
