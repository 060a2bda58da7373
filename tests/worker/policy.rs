//! Whose retry policy counts.

use queuey_rabbitmq::{JobContext, JobError, JobHandler};

use crate::*;

/// Sets a policy of its own for even numbers; fails unless it is told of as many attempts as its
/// job's number.
struct Picky;

impl JobHandler for Picky {
    type Job = Often;

    async fn handle(&self, job: Often, ctx: JobContext) -> Result<(), JobError> {
        match ctx.max_attempts {
            max if max == job.0 => Ok(()),
            max => Err(JobError::fatal(format!("{max} attempts"))),
        }
    }

    fn set_retry_policy(&self, job: &Often) -> Option<RetryPolicy> {
        job.0
            .is_multiple_of(2)
            .then(|| RetryPolicy::fixed(job.0, SECOND))
    }
}

fn attempts(worker: &Worker<Queue, MemoryBackend>, job_type: &str) -> u32 {
    worker.retry_policy_for(job_type).unwrap().max_attempts
}

fn two_handlers(backend: &MemoryBackend) -> WorkerBuilder<Queue, MemoryBackend> {
    builder(backend)
        .handler(Picky)
        .handler_fn(|_: Twice, _| async { Ok(()) })
}

facts! {
    async fn the_queue_decides_when_nothing_else_does(backend) {
        let worker = two_handlers(&backend).build().await.unwrap();

        assert_eq!(attempts(&worker, "twice"), 2);
    }

    async fn the_job_type_beats_its_queue(backend) {
        let worker = two_handlers(&backend).build().await.unwrap();

        assert_eq!(attempts(&worker, "often"), 5);
    }

    async fn an_override_for_the_queue_beats_the_job_type(backend) {
        let worker = two_handlers(&backend).retry_override(Queue::Other, thrice());
        let worker = worker.build().await.unwrap();

        assert_eq!((attempts(&worker, "often"), attempts(&worker, "twice")), (3, 3));
    }

    async fn an_override_for_the_job_type_beats_that_for_the_queue(backend) {
        let worker = two_handlers(&backend)
            .job_retry_override::<Often>(RetryPolicy::fixed(9, SECOND))
            .retry_override(Queue::Other, thrice());
        let worker = worker.build().await.unwrap();

        assert_eq!((attempts(&worker, "often"), attempts(&worker, "twice")), (9, 3));
    }

    async fn the_handler_beats_them_all(backend) {
        let worker = builder(&backend)
            .handler(Picky)
            .job_retry_override::<Often>(RetryPolicy::fixed(9, SECOND));
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Often(6), Often(9)]).await;

        let report = drain(worker, &backend).await;

        assert_eq!(report.counts.succeeded, 2, "{:?}", backend.dead_letters("other"));
    }

    async fn the_last_override_counts(backend) {
        let worker = two_handlers(&backend)
            .retry_override(Queue::Other, RetryPolicy::none())
            .retry_override(Queue::Other, thrice());
        let worker = worker.build().await.unwrap();

        assert_eq!(attempts(&worker, "twice"), 3);
    }

    async fn overrides_without_a_handler_do_nothing(backend) {
        let worker = builder(&backend)
            .job_retry_override::<Often>(thrice())
            .retry_override(Queue::Flat, thrice());
        let worker = worker.build().await.unwrap();

        assert_eq!(worker.retry_policy_for("often"), None);
    }

    async fn no_attempts_at_all_act_like_one(backend) {
        let worker = builder(&backend)
            .handler_fn(async |_: Work, ctx: JobContext| {
                Err(JobError::retryable(format!("of {}", ctx.max_attempts)))
            })
            .retry_override(Queue::Main, RetryPolicy::fixed(0, SECOND));
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        assert_eq!(backend.dead_letters("main")[0].1, "gave up after 1 attempt: of 1");
    }
}
