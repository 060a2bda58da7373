//! Jobs that nobody answers for.

use futures_lite::future;
use queuey_rabbitmq::{Counts, WorkerBuilder, prelude::*};

use crate::{harness::*, support::within, worker::worker};

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
