//! The stages of a shutdown: wait, tell, drop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Instant,
};

use async_channel::Receiver;
use queuey_rabbitmq::{Error, JobContext, JobError, WorkerHandle};

use crate::{
    fault::{Fault, Faulty},
    *,
};

const MS: Duration = Duration::from_millis(1);

/// A worker for one job at a time, which says when one starts.
async fn worker<B: Backend, F>(
    builder: WorkerBuilder<Queue, B>,
    handle: impl Fn(JobContext) -> F + Send + Sync + 'static,
) -> (Worker<Queue, B>, Receiver<()>)
where
    F: Future<Output = Result<(), JobError>> + Send + 'static,
{
    let (start, started) = async_channel::unbounded();
    let builder = builder.concurrency(1).handler_fn(move |_: Work, ctx| {
        start.try_send(()).unwrap();
        handle(ctx)
    });
    (builder.build().await.unwrap(), started)
}

/// Runs `worker`, stops it once its first job has started, and tells how long it took from there.
async fn stopped<B: Backend>(
    (worker, started): (Worker<Queue, B>, Receiver<()>),
    stop: impl Fn(&WorkerHandle),
) -> (queuey_rabbitmq::Result<Report>, Duration) {
    let handle = worker.handle();
    let (result, since) = future::zip(worker.run(), async {
        started.recv().await.unwrap();
        let since = Instant::now();
        stop(&handle);
        since
    })
    .await;
    (result, since.elapsed())
}

async fn told(ctx: JobContext) -> Result<(), JobError> {
    assert!(!ctx.is_cancelled());
    ctx.cancelled().await;
    assert!(ctx.is_cancelled());
    Ok(())
}

async fn deaf(_: JobContext) -> Result<(), JobError> {
    future::pending().await
}

facts! {
    async fn a_handler_that_is_told_to_end_does_so_after_the_grace(backend) {
        let worker = worker(builder(&backend).shutdown_grace(30 * MS), told).await;
        enqueue(&backend, [Work(1)]).await;

        let (report, took) = stopped(worker, WorkerHandle::shutdown).await;

        let counts = report.unwrap().counts;
        assert!(took >= 30 * MS, "{took:?}");
        assert_eq!((counts.succeeded, counts.drained, counts.dropped), (1, 1, 0));
    }

    async fn a_handler_that_goes_on_is_dropped_at_the_deadline(backend) {
        let builder = builder(&backend).shutdown_grace(10 * MS).shutdown_deadline(40 * MS);
        let stubborn = worker(builder, deaf).await;
        enqueue(&backend, [Work(1)]).await;

        let (report, took) = stopped(stubborn, WorkerHandle::shutdown).await;

        let counts = report.unwrap().counts;
        assert!(took >= 40 * MS, "{took:?}");
        assert_eq!((counts.dropped, counts.drained, counts.given_back), (1, 0, 0));
        assert_eq!((backend.pending("main").len(), backend.unsettled("main")), (1, 0));

        let elsewhere = crate::builder(&backend).handler_fn(|_: Work, _| async { Ok(()) });
        let report = drain(elsewhere.build().await.unwrap(), &backend).await;

        assert_eq!((report.counts.succeeded, backend.acked("main").len()), (1, 1));
    }

    async fn a_grace_longer_than_the_deadline_ends_with_it(backend) {
        let seen = Arc::new(AtomicUsize::new(0));
        let builder = builder(&backend).shutdown_grace(Duration::MAX).shutdown_deadline(10 * MS);
        let worker = worker(builder, {
            let seen = Arc::clone(&seen);
            move |ctx| {
                let seen = Arc::clone(&seen);
                async move {
                    ctx.cancelled().await;
                    seen.fetch_add(1, SeqCst);
                    future::pending().await
                }
            }
        })
        .await;
        enqueue(&backend, [Work(1)]).await;

        let (report, _) = stopped(worker, WorkerHandle::shutdown).await;

        assert_eq!(report.unwrap().counts.dropped, 1);
    }

    async fn what_has_not_started_is_back_before_the_running_job_ends(backend) {
        let (gate, opened) = async_channel::bounded::<()>(1);
        let (worker, started) = worker(builder(&backend), move |_| {
            let opened = opened.clone();
            async move {
                let _closed = opened.recv().await;
                Ok(())
            }
        })
        .await;
        let handle = worker.handle();
        enqueue(&backend, (1..=5).map(Work)).await;

        let (report, ()) = future::zip(worker.run(), async {
            started.recv().await.unwrap();
            until(|| backend.unsettled("main") == 2).await;
            handle.shutdown();
            until(|| backend.pending("main").len() == 4).await;
            until(|| handle.counts().unstarted == 1).await;
            drop(gate);
        })
        .await;

        let counts = report.unwrap().counts;
        assert_eq!((counts.succeeded, counts.drained, counts.unstarted), (1, 1, 1));
    }

    async fn an_abort_drops_what_runs(backend) {
        let worker = worker(builder(&backend), deaf).await;
        enqueue(&backend, [Work(1), Work(2)]).await;

        let (report, _) = stopped(worker, WorkerHandle::abort).await;

        assert_eq!(report.unwrap().counts.dropped, 1);
        assert_eq!((backend.pending("main").len(), backend.unsettled("main")), (2, 0));
    }

    async fn an_abort_ends_a_shutdown(backend) {
        let worker = worker(builder(&backend), deaf).await;
        enqueue(&backend, [Work(1)]).await;

        let (report, _) = stopped(worker, |handle| {
            handle.shutdown();
            handle.abort();
        })
        .await;

        assert_eq!(report.unwrap().counts.dropped, 1);
    }

    async fn an_abort_before_the_run_ends_it_at_once(backend) {
        let worker = builder(&backend).build().await.unwrap();
        worker.handle().abort();

        let report = worker.run().await.unwrap();

        assert_eq!(report.counts.dropped, 0);
    }

    async fn a_dropped_run_cancels_and_counts(backend) {
        let (worker, started) = worker(builder(&backend), deaf).await;
        let handle = worker.handle();
        enqueue(&backend, [Work(1)]).await;

        future::or(async { drop(worker.run().await) }, async {
            started.recv().await.unwrap();
        })
        .await;

        until(|| handle.counts().dropped == 1).await;
        assert!(!handle.is_shutdown());
    }

    async fn a_subscription_that_fails_leaves_handlers_no_longer_than_a_shutdown(backend) {
        let failing = Faulty::new(&backend, Fault::Silent, 0);
        let builder = Worker::builder(failing).shutdown_deadline(20 * MS);
        let (worker, started) = worker(builder, deaf).await;
        enqueue(&backend, [Work(1)]).await;

        let (result, ()) = future::zip(worker.run(), async {
            started.recv().await.unwrap();
            backend.close().await.unwrap();
        })
        .await;

        assert!(result.is_err());
    }

    async fn a_backend_that_never_answers_is_not_waited_for(backend) {
        let silent = Faulty::new(&backend, Fault::Silent, 0);
        let builder = Worker::builder(silent)
            .shutdown_deadline(20 * MS)
            .close_backend_on_shutdown(true);
        let worker = worker(builder, |_| async { Ok(()) }).await;
        enqueue(&backend, [Work(1)]).await;

        let (result, _) = stopped(worker, WorkerHandle::shutdown).await;

        assert!(matches!(result, Err(Error::TimedOut { .. })), "{result:?}");
        assert_eq!(backend.pending("main").len(), 1);
    }

    async fn a_context_of_a_test_is_cancelled_by_the_test(_backend) {
        let (ctx, cancel) = JobContext::new::<Work>(1, 3).with_cancel();
        let copy = ctx.clone();
        assert!(future::poll_once(ctx.cancelled()).await.is_none());

        cancel();

        assert!(copy.is_cancelled());
        copy.cancelled().await;
    }
}
