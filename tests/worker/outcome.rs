//! What becomes of a job, by the way its run ends.

use std::{fmt, io, sync::Mutex};

use queuey_rabbitmq::{AckKind, Backend, EnqueueOptions, JobContext, JobError, Producer};

use crate::*;

#[derive(Debug)]
struct Outer(io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outer")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn outer() -> Outer {
    Outer(io::Error::other("inner"))
}

/// The number and priority of each run, in order.
type Runs = std::sync::Arc<Mutex<Vec<(u32, u8)>>>;

fn numbers(runs: &Runs) -> Vec<u32> {
    runs.lock().unwrap().iter().map(|run| run.0).collect()
}

/// The reason the one dead letter of `queue` gives.
fn reason(backend: &MemoryBackend, queue: &str) -> String {
    let letters = backend.dead_letters(queue);
    assert_eq!(letters.len(), 1);
    letters[0].1.clone()
}

/// One failing job, tried once: the reason of its dead letter.
async fn dead_with(
    backend: &MemoryBackend,
    fail: impl Fn() -> Result<(), JobError> + Send + Sync + 'static,
) -> String {
    let worker = builder(backend).handler_fn(move |_: Work, _| {
        let result = fail();
        async { result }
    });
    let worker = worker.build().await.unwrap();
    enqueue(backend, [Work(1)]).await;
    drain(worker, backend).await;
    reason(backend, "main")
}

facts! {
    async fn a_job_that_succeeds_is_acked(backend) {
        let worker = builder(&backend).handler_fn(|_: Work, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        let report = drain(worker, &backend).await;

        assert_eq!(backend.succeeded("main").len(), 1);
        assert_eq!(report.counts.succeeded, 1);
    }

    async fn a_job_that_fails_once_is_retried_after_its_delay(backend) {
        let worker = builder(&backend).handler_fn(async |_: Twice, ctx: JobContext| {
            match ctx.attempt {
                1 => Err(JobError::retryable("not yet")),
                _ => Ok(()),
            }
        });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Twice(1)]).await;

        let report = during(worker, async {
            backend.idle().await;
            assert_eq!(backend.held("other")[0].1, SECOND);
            backend.advance(SECOND);
            backend.idle().await;
        })
        .await;

        assert_eq!(backend.succeeded("other")[0].attempt, 2);
        assert_eq!((report.counts.retried, report.counts.succeeded), (1, 1));
    }

    async fn a_job_that_keeps_failing_is_dead_lettered(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Twice, _| async { Err(JobError::retryable("no luck")) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Twice(1)]).await;

        let report = drain(worker, &backend).await;

        let (envelope, reason) = &backend.dead_letters("other")[0];
        assert_eq!(envelope.attempt, 2);
        assert_eq!(reason, "gave up after 2 attempts: no luck");
        assert_eq!(report.counts.dead_lettered, 1);
    }

    async fn a_fatal_error_is_not_retried(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Twice, _| async { Err(JobError::fatal(outer())) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Twice(1)]).await;

        drain(worker, &backend).await;

        assert_eq!(reason(&backend, "other"), "fatal error: outer: inner");
        assert!(backend.retried("other").is_empty());
    }

    async fn a_dead_letter_tells_the_whole_chain_of_errors(backend) {
        let reason = dead_with(&backend, || Err(outer())?).await;

        assert_eq!(reason, "gave up after 1 attempt: outer: inner");
    }

    async fn a_question_mark_on_a_parse_error_is_retryable(backend) {
        let reason = dead_with(&backend, || {
            let _: u8 = "x".parse()?;
            Ok(())
        });

        assert!(reason.await.starts_with("gave up after 1 attempt: invalid digit"));
    }

    async fn a_question_mark_on_an_io_error_is_retryable(backend) {
        let reason = dead_with(&backend, || Err(io::Error::other("disk"))?).await;

        assert_eq!(reason, "gave up after 1 attempt: disk");
    }

    async fn a_type_without_a_handler_is_dead_lettered_as_it_came(backend) {
        let worker = builder(&backend).build().await.unwrap();
        let envelope = raw("mystery", "main", "[1]");
        backend.publish(&envelope, None).await.unwrap();

        drain(worker, &backend).await;

        assert_eq!(reason(&backend, "main"), "no handler for job type `mystery`");
        assert_eq!(backend.dead_letters("main")[0].0, envelope);
    }

    async fn a_payload_of_another_shape_is_dead_lettered(backend) {
        let worker = builder(&backend).handler_fn(|_: Work, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        backend.publish(&raw("work", "main", "\"one\""), None).await.unwrap();

        drain(worker, &backend).await;

        let reason = reason(&backend, "main");
        assert!(reason.starts_with("decode error: invalid type: string"), "{reason}");
    }

    async fn a_body_that_is_no_envelope_does_not_stop_the_worker(backend) {
        let worker = builder(&backend).handler_fn(|_: Work, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        backend.publish_raw("main", b"\0 no envelope".to_vec()).unwrap();
        enqueue(&backend, [Work(1)]).await;

        let report = drain(worker, &backend).await;

        assert_eq!(report.counts.succeeded, 1);
        assert_eq!(backend.malformed("main").len(), 1);
    }

    async fn a_deferral_keeps_the_attempt_and_returns_at_top_priority(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Work, _| async { Err(JobError::deferred(SECOND)) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        let report = during(worker, backend.idle()).await;

        let (next, delay) = &backend.held("main")[0];
        assert_eq!((next.attempt, next.deferrals, next.priority), (1, 1, 10));
        assert_eq!(*delay, SECOND);
        assert_eq!(report.counts.deferred, 1);
    }

    async fn a_deferral_on_a_queue_without_priorities_returns_at_0(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Flat, _| async { Err(JobError::deferred(SECOND)) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Flat(1)]).await;

        during(worker, backend.idle()).await;

        assert_eq!(backend.held("flat")[0].0.priority, 0);
    }

    async fn a_deferral_asks_no_policy(backend) {
        let worker = builder(&backend).handler_fn(async |_: Work, ctx: JobContext| {
            match ctx.deferrals {
                7 => Ok(()),
                _ => Err(JobError::deferred(SECOND)),
            }
        });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        let done = &backend.succeeded("main")[0];
        assert_eq!((done.attempt, done.deferrals), (1, 7));
    }

    async fn a_retry_after_a_deferral_has_no_priority(backend) {
        let worker = builder(&backend).handler_fn(async |_: Twice, ctx: JobContext| {
            match (ctx.deferrals, ctx.attempt) {
                (0, _) => Err(JobError::deferred(SECOND)),
                (_, 1) => Err(JobError::retryable("once")),
                _ => Ok(()),
            }
        });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Twice(1)]).await;

        drain(worker, &backend).await;

        let settled = backend.settled("other");
        let seen: Vec<_> = settled.iter().map(|(it, kind)| (*kind, it.priority)).collect();
        assert_eq!(
            seen,
            [(AckKind::Deferred, 0), (AckKind::Retried, 10), (AckKind::Succeeded, 0)]
        );
    }

    async fn a_deferred_job_overtakes_what_was_enqueued_meanwhile(backend) {
        let runs = Runs::default();
        let worker = async || {
            let runs = runs.clone();
            let worker = builder(&backend).concurrency(1).handler_fn(move |job: Work, ctx| {
                runs.lock().unwrap().push((job.0, ctx.priority));
                async move {
                    match job.0 {
                        1 if ctx.deferrals == 0 => Err(JobError::deferred(SECOND)),
                        _ => Ok(()),
                    }
                }
            });
            worker.build().await.unwrap()
        };
        let first = worker().await;
        enqueue(&backend, [Work(1)]).await;
        during(first, backend.idle()).await;

        enqueue(&backend, [Work(2), Work(3)]).await;
        backend.advance(SECOND);
        drain(worker().await, &backend).await;

        assert_eq!(numbers(&runs), [1, 1, 2, 3]);
    }

    async fn the_correlation_id_reaches_every_attempt(backend) {
        let worker = builder(&backend).handler_fn(async |_: Twice, ctx: JobContext| {
            match (ctx.attempt, ctx.correlation_id.as_deref()) {
                (2, Some("order 7")) => Ok(()),
                _ => Err(JobError::retryable("again")),
            }
        });
        let worker = worker.build().await.unwrap();
        let options = EnqueueOptions::now().correlation_id("order 7");
        let producer = Producer::new_undeclared(backend.clone());
        producer.enqueue_with(&Twice(1), options).await.unwrap();

        let report = drain(worker, &backend).await;

        assert_eq!(report.counts.succeeded, 1);
    }

    async fn a_job_given_back_by_another_consumer_says_so(backend) {
        let worker = builder(&backend).handler_fn(async |_: Work, ctx: JobContext| {
            ctx.redelivered.then_some(()).ok_or(JobError::fatal("first delivery"))
        });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;
        let mut deliveries = backend.consume(&Queue::Main.config()).await.unwrap();
        drop(futures_lite::StreamExt::next(&mut deliveries).await);
        drop(deliveries);

        let report = drain(worker, &backend).await;

        assert_eq!(report.counts.succeeded, 1);
    }
}
