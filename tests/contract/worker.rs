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

fn worker<H: Harness>(h: &H, queue: &QueueConfig) -> WorkerBuilder<Named, H::Backend> {
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

/// Runs a worker until its handler has told of `starts` runs, then drops what runs.
async fn crash_after<H: Harness>(
    builder: WorkerBuilder<Named, H::Backend>,
    starts: &async_channel::Receiver<JobContext>,
    tell: &async_channel::Sender<JobContext>,
    fail_first: bool,
) -> (JobContext, Counts) {
    let tell = tell.clone();
    let worker = builder.handler_fn(move |Number(_), ctx: JobContext| {
        let tell = tell.clone();
        async move {
            if fail_first && ctx.attempt == 1 {
                return Err(JobError::retryable("not yet"));
            }
            tell.send(ctx).await?;
            future::pending().await
        }
    });
    let worker = worker.build().await.unwrap();
    let handle = worker.handle();
    let operator = async {
        let ctx = starts.recv().await.unwrap();
        handle.abort();
        ctx
    };
    let (report, ctx) = within("an end", future::zip(worker.run(), operator)).await;
    (ctx, report.unwrap().counts)
}

pub async fn a_job_that_nobody_answers_for_is_given_up_as_a_crash_loop<H: Harness>(h: H) {
    let queue = h.declared().await;
    let job = h.publish(&queue, 1).await;
    let (tell, starts) = async_channel::unbounded();
    let limited = || worker(&h, &queue).crash_limit(2);

    let (first, counts) = crash_after::<H>(limited(), &starts, &tell, false).await;
    assert_eq!((first.redelivered, counts.crashed), (false, 0));
    h.until_ready(&queue, 1).await;
    let (second, counts) = crash_after::<H>(limited(), &starts, &tell, false).await;
    // Counted, and its original acked, before it runs again.
    assert_eq!((second.redelivered, counts.crashed), (true, 1));
    assert_eq!((second.job_id, second.attempt), (job.job_id, 1));
    h.until_ready(&queue, 1).await;
    run_until(limited(), "a dead letter", |counts| {
        counts.dead_lettered == 1
    })
    .await;

    let dead = h.dead_job(&queue.name).await;
    assert_eq!(
        (dead.job_id, dead.enqueued_at_ms),
        (job.job_id, job.enqueued_at_ms)
    );
    assert_eq!(dead.attempt, 1);
    let failure = dead.failure().unwrap();
    assert_eq!(failure.cause, Some(DeadLetterCause::CrashLoop));
    assert!(failure.chain[0].starts_with("crash loop: handed out 2 times"));
    assert_eq!(h.ready(&queue.name).await, 0);
}

pub async fn an_attempt_that_ends_is_no_crash<H: Harness>(h: H) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let (tell, starts) = async_channel::unbounded();
    let limited = || worker(&h, &queue).crash_limit(2);

    crash_after::<H>(limited(), &starts, &tell, false).await;
    h.until_ready(&queue, 1).await;
    // Counted once, it fails; the next attempt has crashed no process yet.
    let (second, counts) = crash_after::<H>(limited(), &starts, &tell, true).await;
    assert_eq!((second.attempt, second.redelivered), (2, false));
    assert_eq!((counts.crashed, counts.retried), (1, 1));
    h.until_ready(&queue, 1).await;
    let builder = limited().handler_fn(|Number(_), _| async { Ok(()) });
    let counts = run_until(builder, "the job", |counts| counts.succeeded == 1).await;

    assert_eq!((counts.crashed, counts.dead_lettered), (1, 0));
}

pub async fn without_a_limit_a_job_comes_back_for_ever<H: Harness>(h: H) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let (tell, starts) = async_channel::unbounded();

    for round in 0..12 {
        let unlimited = worker(&h, &queue).crash_limit(None);
        let (ctx, counts) = crash_after::<H>(unlimited, &starts, &tell, false).await;
        assert_eq!((ctx.redelivered, counts.crashed), (round > 0, 0));
        h.until_ready(&queue, 1).await;
    }
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
