//! Handlers that panic, hang or block.

use std::{
    panic::panic_any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use queuey_rabbitmq::{FnDeadLetterHook, JobContext, JobError, JobHandler};

use crate::*;

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("dropped");
        }
    }
}

/// The reason a job is dead-lettered with whose run, at most 5 ms long, ends like this.
async fn dead_with<R>(
    backend: &MemoryBackend,
    run: impl Fn() -> R + Send + Sync + 'static,
) -> String
where
    R: Future<Output = Result<(), JobError>> + Send + 'static,
{
    let worker = builder(backend)
        .handler_fn(move |_: Work, _| run())
        .job_timeout(Duration::from_millis(5));
    let worker = worker.build().await.unwrap();
    enqueue(backend, [Work(1)]).await;
    drain(worker, backend).await;
    backend.dead_letters("main").remove(0).1
}

struct Undecided;

impl JobHandler for Undecided {
    type Job = Work;

    async fn handle(&self, _: Work, _: JobContext) -> Result<(), JobError> {
        Ok(())
    }

    fn set_retry_policy(&self, _: &Work) -> Option<RetryPolicy> {
        panic!("no policy")
    }
}

facts! {
    async fn a_panic_is_a_failure_with_its_message(backend) {
        let reason = dead_with(&backend, || async { panic!("at the disco") }).await;

        assert_eq!(reason, "gave up after 1 attempt: the handler panicked: at the disco");
    }

    async fn a_panic_may_say_a_string(backend) {
        let reason = dead_with(&backend, || async { panic!("number {}", 5) }).await;

        assert_eq!(reason, "gave up after 1 attempt: the handler panicked: number 5");
    }

    async fn a_panic_may_say_nothing(backend) {
        let reason = dead_with(&backend, || async { panic_any(5) }).await;

        assert_eq!(
            reason,
            "gave up after 1 attempt: the handler panicked with a non-text payload"
        );
    }

    async fn a_panic_may_throw_what_panics_in_its_drop(backend) {
        let reason = dead_with(&backend, || async { panic_any(Bomb) }).await;

        assert_eq!(
            reason,
            "gave up after 1 attempt: the handler panicked with a non-text payload"
        );
    }

    async fn a_panic_before_the_first_await_is_a_failure(backend) {
        let reason = dead_with(&backend, || -> future::Ready<_> { panic!("early") }).await;

        assert_eq!(reason, "gave up after 1 attempt: the handler panicked: early");
    }

    async fn a_panic_while_the_policy_is_asked_for_is_a_failure(backend) {
        let worker = builder(&backend).handler(Undecided).build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        let reason = &backend.dead_letters("main")[0].1;
        assert_eq!(reason, "gave up after 1 attempt: the handler panicked: no policy");
    }

    async fn a_panic_is_retried(backend) {
        let worker = builder(&backend).handler_fn(async |_: Twice, ctx: JobContext| {
            assert_eq!(ctx.attempt, 2);
            Ok(())
        });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Twice(1)]).await;

        let report = drain(worker, &backend).await;

        assert_eq!((report.counts.retried, report.counts.succeeded), (1, 1));
    }

    async fn a_panic_message_reaches_the_hook(backend) {
        let heard = Arc::new(Mutex::new(String::new()));
        let hook = FnDeadLetterHook::new({
            let heard = Arc::clone(&heard);
            move |letter| {
                *heard.lock().unwrap() = letter.reason;
                async {}
            }
        });
        let worker = builder(&backend)
            .handler_fn(|_: Work, _| async { panic!("at the disco") })
            .on_dead_letter(hook);
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        assert!(heard.lock().unwrap().ends_with("panicked: at the disco"));
    }

    async fn a_run_that_takes_too_long_is_a_failure(backend) {
        let reason = dead_with(&backend, future::pending).await;

        assert_eq!(reason, "gave up after 1 attempt: timed out after 5ms");
    }

    async fn a_run_that_takes_too_long_may_panic_in_its_drop(backend) {
        let reason = dead_with(&backend, || async {
            let _bomb = Bomb;
            future::pending().await
        });

        assert_eq!(reason.await, "gave up after 1 attempt: timed out after 5ms");
    }

    async fn a_timeout_a_panic_and_an_error_are_three_attempts(backend) {
        let runs = Arc::new(AtomicUsize::new(0));
        let worker = async || {
            let runs = Arc::clone(&runs);
            let run = move |_: Work, ctx: JobContext| {
                runs.fetch_add(1, SeqCst);
                async move {
                    match ctx.attempt {
                        1 => future::pending().await,
                        2 => panic!("second"),
                        _ => Err(JobError::retryable("third")),
                    }
                }
            };
            let worker = builder(&backend)
                .handler_fn(run)
                .retry_override(Queue::Main, thrice())
                .job_timeout(Duration::from_millis(5));
            worker.build().await.unwrap()
        };
        let first = worker().await;
        enqueue(&backend, [Work(1)]).await;

        during(first, backend.idle()).await;
        for _ in 2..=4 {
            backend.advance(SECOND);
            during(worker().await, backend.idle()).await;
        }

        let (envelope, reason) = &backend.dead_letters("main")[0];
        assert_eq!((runs.load(SeqCst), envelope.attempt), (3, 3));
        assert_eq!(reason, "gave up after 3 attempts: third");
    }
}
