//! A whole worker on a backend.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_lite::future;
use queuey_rabbitmq::{Counts, QueueConfig, WorkerBuilder, prelude::*};

use crate::{
    harness::*,
    support::{pause, within},
};

pub fn worker<H: Harness>(h: &H, queue: &QueueConfig) -> WorkerBuilder<Named, H::Backend> {
    Worker::builder(h.backend().clone())
        .queues(&[named(queue)])
        .job_retry_override::<Number>(RetryPolicy::fixed(3, MS))
}

pub async fn a_job_runs_end_to_end(h: impl Harness) {
    let queue = h.declared().await;
    let seen = Arc::new(AtomicUsize::new(0));
    for number in 1..=10 {
        h.publish(&queue, number).await;
    }

    let sum = seen.clone();
    let builder = worker(&h, &queue).handler_fn(move |Number(n), _| {
        sum.fetch_add(n as usize, Ordering::SeqCst);
        async { Ok(()) }
    });
    let counts = run_until(builder, "ten jobs", |counts| counts.succeeded == 10).await;

    assert_eq!(counts.settle_failures, 0);
    assert_eq!(seen.load(Ordering::SeqCst), 55);
    assert_eq!(h.ready(&queue.name).await, 0);
}

pub async fn a_failing_job_is_retried_then_dead_lettered(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    let builder = worker(&h, &queue).handler_fn(|Number(_), _| async {
        "x".parse::<u8>()?;
        Ok(())
    });
    let counts = run_until(builder, "a dead letter", |counts| counts.dead_lettered == 1).await;

    assert_eq!(counts.retried, 2);
    let (body, reason) = h.dead(&queue.name).await;
    assert_eq!(Envelope::from_bytes(&body).unwrap().attempt, 3);
    assert!(reason.contains("invalid digit"), "{reason}");
}

pub async fn a_deferred_job_runs_again_in_the_same_attempt(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    let builder = worker(&h, &queue).handler_fn(|Number(_), ctx: JobContext| async move {
        assert_eq!(ctx.attempt, 1);
        match ctx.deferrals {
            0 => Err(JobError::deferred(20 * MS)),
            1 if ctx.priority == 10 => Ok(()),
            _ => Err(JobError::fatal("deferred too often")),
        }
    });
    let counts = run_until(builder, "the second run", |counts| counts.succeeded == 1).await;

    assert_eq!((counts.deferred, counts.retried), (1, 0));
}

pub async fn a_panic_is_told_in_the_dead_letter(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    let builder = worker(&h, &queue)
        .job_retry_override::<Number>(RetryPolicy::none())
        // A panic that prints nothing.
        .handler_fn(|Number(n), _| async move {
            std::panic::resume_unwind(Box::new(format!("number {n} is cursed")))
        });
    run_until(builder, "a dead letter", |counts| counts.dead_lettered == 1).await;

    let (_, reason) = h.dead(&queue.name).await;
    assert!(reason.contains("number 1 is cursed"), "{reason}");
}

pub async fn a_dead_letter_tells_its_attempts(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    let builder = worker(&h, &queue).handler_fn(|Number(_), ctx: JobContext| async move {
        match (ctx.attempt, ctx.last_failure()) {
            (1, None) => Err(JobError::retryable("first")),
            (2, Some(_)) => Err(JobError::retryable("ß".repeat(500_000))),
            (3, Some(last)) if last.attempt == 2 => Err("x".parse::<u8>().unwrap_err())?,
            (_, last) => panic!("{last:?}"),
        }
    });
    run_until(builder, "a dead letter", |counts| counts.dead_lettered == 1).await;

    let dead = h.dead_job(&queue.name).await;
    let failure = dead.failure().expect("a failure");
    assert_eq!(failure.attempt, 3);
    assert_eq!(failure.cause, Some(DeadLetterCause::Exhausted));
    assert_eq!(
        failure.error_type.as_deref(),
        Some("core::num::error::ParseIntError")
    );
    let [first, second] = &*failure.earlier else {
        panic!("{failure:?}");
    };
    assert_eq!((first.attempt, &*first.error), (1, "first"));
    assert!(second.attempt == 2 && second.error.starts_with('ß'));
    assert_eq!(failure.first_failed_at_ms, first.at_ms);
    assert!(first.at_ms <= second.at_ms && second.at_ms <= failure.failed_at_ms);
}

pub async fn a_timeout_is_a_failed_attempt(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    let builder = worker(&h, &queue).job_timeout(30 * MS).handler_fn(
        |Number(_), ctx: JobContext| async move {
            if ctx.attempt == 1 {
                future::pending::<()>().await;
            }
            Ok(())
        },
    );
    let counts = run_until(builder, "the second run", |counts| counts.succeeded == 1).await;

    assert_eq!(counts.retried, 1);
}

pub async fn concurrency_is_never_exceeded(h: impl Harness) {
    let queue = h.declared().await;
    for number in 0..12 {
        h.publish(&queue, number).await;
    }
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));

    let peak = most.clone();
    let builder = worker(&h, &queue)
        .concurrency(3)
        .handler_fn(move |Number(_), _| {
            let (running, peak) = (running.clone(), peak.clone());
            async move {
                peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                pause(10 * MS).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        });
    run_until(builder, "twelve jobs", |counts| counts.succeeded == 12).await;

    assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
}

pub async fn a_busy_queue_runs_beside_idle_ones(h: impl Harness) {
    let (busy, idle, other) = (h.declared().await, h.declared().await, h.declared().await);
    for number in 0..6 {
        h.publish(&busy, number).await;
    }

    let builder = Worker::builder(h.backend().clone())
        .queues(&[named(&idle), named(&other), named(&busy)])
        .concurrency(2)
        .handler_fn(|Number(_), _| async { Ok(()) });
    let counts = run_until(builder, "six jobs", |counts| counts.succeeded == 6).await;

    assert_eq!(counts.succeeded, 6);
}

pub async fn a_shutdown_gives_back_what_has_not_started(h: impl Harness) {
    let queue = h.declared().await;
    for number in 0..5 {
        h.publish(&queue, number).await;
    }
    let (started, starts) = async_channel::bounded::<()>(1);
    let (release, released) = async_channel::bounded::<()>(1);

    let worker = worker(&h, &queue)
        .concurrency(1)
        .handler_fn(move |Number(_), _| {
            let (started, released) = (started.clone(), released.clone());
            async move {
                started.send(()).await?;
                released.recv().await?;
                Ok(())
            }
        })
        .build()
        .await
        .unwrap();
    let handle = worker.handle();
    let operator = async {
        starts.recv().await.unwrap();
        handle.shutdown();
        // The handler still runs; the other four are back at once.
        h.until_ready(&queue, 4).await;
        release.send(()).await.unwrap();
    };
    let (report, ()) = within("the end", future::zip(worker.run(), operator)).await;

    assert_eq!(report.unwrap().counts.succeeded, 1);
    assert_eq!(h.ready(&queue.name).await, 4);
}

pub async fn a_handler_that_is_told_to_end_is_settled(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let (started, starts) = async_channel::bounded::<()>(1);

    let worker = worker(&h, &queue)
        .shutdown_grace(20 * MS)
        .handler_fn(move |Number(_), ctx: JobContext| {
            let started = started.clone();
            async move {
                started.send(()).await?;
                ctx.cancelled().await;
                Ok(())
            }
        })
        .build()
        .await
        .unwrap();
    let counts = stopped_once(worker, starts).await;

    assert_eq!((counts.succeeded, counts.drained), (1, 1));
    assert_eq!(h.ready(&queue.name).await, 0);
}

pub async fn a_handler_that_goes_on_is_dropped_and_its_job_runs_elsewhere(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let (started, starts) = async_channel::bounded::<()>(1);

    let stubborn = worker(&h, &queue)
        .shutdown_deadline(20 * MS)
        .handler_fn(move |Number(_), _| {
            let started = started.clone();
            async move {
                started.send(()).await?;
                future::pending().await
            }
        })
        .build()
        .await
        .unwrap();
    let counts = stopped_once(stubborn, starts).await;

    assert_eq!((counts.dropped, counts.succeeded), (1, 0));
    h.until_ready(&queue, 1).await;
    let builder = worker(&h, &queue).handler_fn(|Number(_), ctx: JobContext| async move {
        assert!(ctx.redelivered);
        Ok(())
    });
    run_until(builder, "the second run", |counts| counts.succeeded == 1).await;
    assert_eq!(h.ready(&queue.name).await, 0);
}

/// Runs `worker` until its first job has started, then shuts it down.
async fn stopped_once<B: Backend>(
    worker: Worker<Named, B>,
    starts: async_channel::Receiver<()>,
) -> Counts {
    let handle = worker.handle();
    let operator = async {
        starts.recv().await.unwrap();
        handle.shutdown();
    };
    let (report, ()) = within("the end", future::zip(worker.run(), operator)).await;
    report.unwrap().counts
}

pub async fn a_refused_retry_is_dead_lettered(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    let builder = worker(&h, &queue)
        .job_retry_override::<Number>(RetryPolicy::fixed(3, Duration::MAX))
        .handler_fn(|Number(_), _| async { Err(JobError::retryable("no luck")) });
    let counts = run_until(builder, "a dead letter", |counts| counts.dead_lettered == 1).await;

    assert_eq!(counts.settle_failures, 1);
    let (_, reason) = h.dead(&queue.name).await;
    assert!(
        reason.contains("cannot retry") && reason.contains("no luck"),
        "{reason}"
    );
}

pub async fn a_job_without_handler_is_dead_lettered(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    let counts = run_until(worker(&h, &queue), "a dead letter", |counts| {
        counts.dead_lettered == 1
    })
    .await;

    assert_eq!(counts.succeeded, 0);
    let (_, reason) = h.dead(&queue.name).await;
    assert!(reason.contains("`number`"), "{reason}");
}
