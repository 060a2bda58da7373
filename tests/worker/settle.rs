//! Settlements that fail, and backends that do.

use queuey_rabbitmq::{Counts, Error, JobError};

use crate::{
    fault::{Fault, Faulty},
    *,
};

/// Runs a job that ends like this until one settlement has failed, then stops.
async fn settled_with(faulty: Faulty, end: fn() -> Result<(), JobError>) -> Counts {
    let backend = faulty.inner.clone();
    let worker = Worker::builder(faulty).handler_fn(move |_: Twice, _| async move { end() });
    let worker = worker.build().await.unwrap();
    let handle = worker.handle();
    enqueue(&backend, [Twice(1)]).await;

    let report = during(worker, until(|| handle.settle_failures() == 1)).await;
    report.counts
}

fn retry_forever() -> RetryPolicy {
    RetryPolicy::fixed(3, Duration::MAX)
}

fn no() -> Result<(), JobError> {
    Err(JobError::retryable("no"))
}

facts! {
    async fn a_retry_that_can_never_be_stored_is_dead_lettered(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Work, _| async { no() })
            .retry_override(Queue::Main, retry_forever());
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        let report = drain(worker, &backend).await;

        let reason = &backend.dead_letters("main")[0].1;
        assert!(reason.starts_with("cannot retry: cannot hold a job for `main`"), "{reason}");
        assert!(reason.ends_with("(after: no)"), "{reason}");
        assert_eq!((report.counts.settle_failures, report.counts.dead_lettered), (1, 1));
    }

    async fn a_deferral_that_can_never_be_stored_is_dead_lettered(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Work, _| async { Err(JobError::deferred(Duration::MAX)) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        let reason = &backend.dead_letters("main")[0].1;
        assert!(reason.starts_with("cannot defer: "), "{reason}");
    }

    async fn a_retry_that_may_be_stored_later_is_given_back(backend) {
        let counts = settled_with(Faulty::new(&backend, Fault::Back, 1), no).await;

        assert_eq!((counts.settle_failures, counts.given_back), (1, 1));
        assert_eq!(backend.pending("other")[0].attempt, 1);
    }

    async fn a_deferral_that_may_be_stored_later_is_given_back(backend) {
        let faulty = Faulty::new(&backend, Fault::Back, 1);

        let counts = settled_with(faulty, || Err(JobError::deferred(SECOND))).await;

        assert_eq!((counts.settle_failures, counts.given_back), (1, 1));
        assert_eq!(backend.pending("other").len(), 1);
    }

    async fn a_dead_letter_that_may_be_stored_later_is_given_back(backend) {
        let faulty = Faulty::new(&backend, Fault::Back, 1);

        let counts = settled_with(faulty, || Err(JobError::fatal("no"))).await;

        assert_eq!((counts.settle_failures, counts.given_back), (1, 1));
        assert!(backend.dead_letters("other").is_empty());
    }

    async fn a_job_given_back_is_kept_for_a_while_first(backend) {
        let worker = Worker::builder(Faulty::new(&backend, Fault::Back, 1))
            .handler_fn(|_: Twice, _| async { no() });
        let worker = worker.build().await.unwrap();
        let handle = worker.handle();
        enqueue(&backend, [Twice(1)]).await;

        during(worker, async {
            until(|| handle.settle_failures() == 1).await;
            Timer::after(Duration::from_millis(20)).await;
            assert_eq!((handle.counts().given_back, backend.unsettled("other")), (0, 1));
        })
        .await;
    }

    async fn a_lost_ack_is_counted_and_is_no_success(backend) {
        let worker = Worker::builder(Faulty::new(&backend, Fault::Lost, 1))
            .handler_fn(|_: Twice, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Twice(1)]).await;

        let report = during(worker, backend.idle()).await;

        assert_eq!((report.counts.settle_failures, report.counts.succeeded), (1, 1));
        assert_eq!(backend.succeeded("other").len(), 1);
    }

    async fn a_lost_subscription_ends_the_run_with_its_error(backend) {
        let worker = Worker::builder(Faulty::new(&backend, Fault::Stream, 0))
            .handler_fn(|_: Work, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        let handle = worker.handle();
        enqueue(&backend, [Work(1)]).await;

        let result = worker.run().await;

        assert!(matches!(result, Err(Error::Disconnected { .. })), "{result:?}");
        assert_eq!(handle.counts().succeeded, 1);
    }

    async fn a_backend_that_does_not_close_is_an_error(backend) {
        let worker = Worker::builder(Faulty::new(&backend, Fault::Back, 0))
            .handler_fn(|_: Work, _| async { Ok(()) })
            .close_backend_on_shutdown(true);
        let worker = worker.build().await.unwrap();

        worker.handle().shutdown();
        let result = worker.run().await;

        assert!(matches!(result, Err(Error::Disconnected { .. })), "{result:?}");
    }
}
