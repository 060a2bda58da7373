//! Which handler gets which job, and what a worker is made of.

use queuey_rabbitmq::{Backend, Error, JobContext, JobError};

use crate::*;

job!(Impostor, Main, "again");
job!(
    Renamed,
    Main,
    "renamed",
    const ALIASES: &'static [&'static str] = &["frequent"];
);

async fn done<J>(_: J, _: JobContext) -> Result<(), JobError> {
    Ok(())
}

facts! {
    async fn each_type_finds_its_handler(backend) {
        let worker = builder(&backend)
            .handler_fn(done::<Work>)
            .handler_fn(|_: Twice, _| async { Err(JobError::fatal("twice")) })
            .handler_fn(|_: Flat, _| async { Err(JobError::fatal("flat")) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;
        enqueue(&backend, [Twice(1)]).await;
        enqueue(&backend, [Flat(1)]).await;

        drain(worker, &backend).await;

        assert_eq!(backend.succeeded("main").len(), 1);
        assert_eq!(backend.dead_letters("other")[0].1, "fatal error: twice");
        assert_eq!(backend.dead_letters("flat")[0].1, "fatal error: flat");
    }

    async fn a_fallback_takes_what_has_no_handler_as_it_is(backend) {
        let worker = builder(&backend)
            .handler_fn(done::<Work>)
            .raw_handler_fn(Queue::Other, "named", |job, ctx: JobContext| async move {
                Err(JobError::fatal(format!("{} {}", ctx.job_type, job.payload)))
            })
            .fallback_fn(Queue::Main, |job, ctx: JobContext| async move {
                Err(JobError::fatal(format!("{} {} {}", ctx.job_type, job.job_type, job.payload)))
            });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;
        backend.publish(&raw("named", "other", "[1,  2]"), None).await.unwrap();
        backend.publish(&raw("unheard", "flat", "[3,  4]"), None).await.unwrap();

        drain(worker, &backend).await;

        assert_eq!(backend.succeeded("main").len(), 1);
        assert_eq!(backend.dead_letters("other")[0].1, "fatal error: named [1,  2]");
        assert_eq!(backend.dead_letters("flat")[0].1, "fatal error: * unheard [3,  4]");
    }

    async fn a_fallback_follows_the_policy_of_its_queue(backend) {
        let worker = builder(&backend)
            .fallback_fn(Queue::Main, |_, ctx: JobContext| async move {
                assert_eq!(ctx.max_attempts, thrice().max_attempts);
                Err(JobError::retryable("no"))
            })
            .retry_override(Queue::Main, thrice());
        let worker = worker.build().await.unwrap();
        backend.publish(&raw("unheard", "main", "1"), None).await.unwrap();

        during(worker, backend.idle()).await;

        assert_eq!(backend.held("main").len(), 1);
    }

    async fn a_job_runs_whichever_queue_it_comes_from(backend) {
        let worker = builder(&backend).handler_fn(done::<Work>);
        let worker = worker.build().await.unwrap();
        backend.publish(&raw("work", "other", "1"), None).await.unwrap();

        drain(worker, &backend).await;

        assert_eq!(backend.succeeded("other").len(), 1);
    }

    async fn a_retry_stays_on_the_queue_of_the_envelope(backend) {
        let worker = builder(&backend)
            .handler_fn(|_: Work, _| async { Err(JobError::retryable("no")) })
            .job_retry_override::<Work>(thrice());
        let worker = worker.build().await.unwrap();
        backend.publish(&raw("work", "other", "1"), None).await.unwrap();

        during(worker, backend.idle()).await;

        assert_eq!(backend.held("other").len(), 1);
    }

    async fn a_job_under_an_earlier_name_finds_its_handler(backend) {
        let worker = builder(&backend).handler_fn(async |_: Often, ctx: JobContext| {
            assert_eq!(ctx.job_type, "often");
            Ok(())
        });
        let worker = worker.build().await.unwrap();
        for name in ["often", "frequent", "again"] {
            backend.publish(&raw(name, "other", "1"), None).await.unwrap();
        }

        let report = drain(worker, &backend).await;

        assert_eq!(report.counts.succeeded, 3);
    }

    async fn two_handlers_for_one_name_are_refused(backend) {
        let worker = builder(&backend).handler_fn(done::<Work>).handler_fn(done::<Work>);

        let error = worker.build().await.unwrap_err();

        assert!(matches!(&error, Error::DuplicateHandler(name) if name == "work"), "{error}");
        assert!(backend.queue_names().is_empty());
    }

    async fn a_name_that_is_an_alias_of_another_is_refused(backend) {
        let worker = builder(&backend).handler_fn(done::<Often>).handler_fn(done::<Impostor>);

        let error = worker.build().await.unwrap_err();

        assert!(matches!(&error, Error::DuplicateHandler(name) if name == "again"), "{error}");
    }

    async fn an_alias_claimed_twice_is_refused(backend) {
        let worker = builder(&backend).handler_fn(done::<Renamed>).handler_fn(done::<Often>);

        let error = worker.build().await.unwrap_err();

        assert!(matches!(&error, Error::DuplicateHandler(name) if name == "frequent"), "{error}");
    }

    async fn only_the_queues_consumed_are_declared(backend) {
        let worker = builder(&backend).queues(&[Queue::Other, Queue::Flat, Queue::Other]);

        let worker = worker.build().await.unwrap();

        let names: Vec<_> = worker.queues().iter().map(|queue| &*queue.name).collect();
        assert_eq!(names, ["other", "flat"]);
        assert_eq!(backend.queue_names(), ["flat", "other"]);
    }

    async fn a_queue_left_out_is_not_consumed(backend) {
        backend.declare(&[Queue::Main.config()]).await.unwrap();
        let worker = builder(&backend)
            .queues(&[Queue::Other])
            .handler_fn(done::<Work>)
            .handler_fn(done::<Twice>);
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;
        enqueue(&backend, [Twice(1)]).await;

        during(worker, until(|| backend.succeeded("other").len() == 1)).await;

        assert_eq!(backend.pending("main").len(), 1);
    }

    async fn the_default_concurrency_is_what_is_prefetched(backend) {
        let all = builder(&backend).build().await.unwrap();
        let some = builder(&backend).queues(&[Queue::Other]).build().await.unwrap();
        let none = builder(&backend).queues(&[]).build().await.unwrap();

        assert_eq!((all.concurrency(), some.concurrency(), none.concurrency()), (12, 3, 1));
    }

    async fn no_concurrency_at_all_acts_like_one(backend) {
        let worker = builder(&backend).concurrency(0).build().await.unwrap();

        assert_eq!(worker.concurrency(), 1);
    }

    async fn debug_names_queues_and_handlers(backend) {
        let worker = builder(&backend).handler_fn(done::<Often>).handler_fn(done::<Flat>);

        let worker = worker.queues(&[Queue::Other]).build().await.unwrap();

        assert_eq!(
            format!("{worker:?}"),
            "Worker { queues: [\"other\"], handlers: [\"flat\", \"often\"], concurrency: 3, \
             job_timeout: None, has_dead_letter_hook: false, closes_backend: false }"
        );
    }
}
