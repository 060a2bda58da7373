//! What the dead-letter hook hears, and when.

use std::sync::{Arc, Mutex};

use queuey_rabbitmq::{Backend, DeadLetter, DeadLetterCause, FnDeadLetterHook, JobError};

use crate::*;

/// What a hook heard.
type Heard = Arc<Mutex<Vec<DeadLetter>>>;

fn listener(heard: &Heard) -> impl queuey_rabbitmq::DeadLetterHook + use<> {
    let heard = Arc::clone(heard);
    FnDeadLetterHook::new(move |letter| {
        heard.lock().unwrap().push(letter);
        async {}
    })
}

/// What the hook hears of a job that fails like this, with three attempts.
async fn heard_of(
    backend: &MemoryBackend,
    envelope: Envelope,
    fail: fn() -> Result<(), JobError>,
) -> Vec<DeadLetter> {
    let heard = Heard::default();
    let worker = builder(backend)
        .handler_fn(move |_: Work, _| async move { fail() })
        .retry_override(Queue::Main, thrice())
        .on_dead_letter(listener(&heard));
    let worker = worker.build().await.unwrap();
    backend.publish(&envelope, None).await.unwrap();
    drain(worker, backend).await;
    heard.lock().unwrap().clone()
}

fn job() -> Envelope {
    raw("work", "main", "1").with_correlation_id("order 7")
}

facts! {
    async fn it_hears_of_exhaustion(backend) {
        let heard = heard_of(&backend, job(), || Err(JobError::retryable("no"))).await;

        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].cause, DeadLetterCause::Exhausted);
        assert_eq!(heard[0].reason, "gave up after 3 attempts: no");
        assert_eq!((heard[0].attempts(), heard[0].max_attempts), (3, Some(3)));
        assert_eq!(heard[0].envelope.correlation_id.as_deref(), Some("order 7"));
    }

    async fn it_hears_of_a_fatal_error(backend) {
        let heard = heard_of(&backend, job(), || Err(JobError::fatal("no"))).await;

        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].cause, DeadLetterCause::Fatal);
        assert_eq!((heard[0].attempts(), heard[0].max_attempts), (1, Some(3)));
    }

    async fn it_hears_of_a_payload_of_another_shape(backend) {
        let heard = heard_of(&backend, raw("work", "main", "{}"), || Ok(())).await;

        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].cause, DeadLetterCause::Decode);
        assert_eq!(heard[0].max_attempts, Some(3));
    }

    async fn it_hears_of_a_type_without_a_handler(backend) {
        let heard = heard_of(&backend, raw("mystery", "main", "1"), || Ok(())).await;

        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].cause, DeadLetterCause::NoHandler);
        assert_eq!(heard[0].max_attempts, None);
    }

    async fn it_hears_of_a_refused_deferral(backend) {
        let heard = heard_of(&backend, job(), || Err(JobError::deferred(Duration::MAX))).await;

        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].cause, DeadLetterCause::Refused);
    }

    async fn it_hears_nothing_of_a_success(backend) {
        let heard = heard_of(&backend, job(), || Ok(())).await;

        assert!(heard.is_empty());
    }

    async fn it_hears_nothing_of_a_retry_or_a_deferral(backend) {
        let heard = Heard::default();
        let worker = builder(&backend)
            .handler_fn(|job: Often, _| async move {
                match job.0 {
                    1 => Err(JobError::retryable("no")),
                    _ => Err(JobError::deferred(SECOND)),
                }
            })
            .on_dead_letter(listener(&heard));
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Often(1), Often(2)]).await;

        during(worker, backend.idle()).await;

        assert_eq!(backend.held("other").len(), 2);
        assert!(heard.lock().unwrap().is_empty());
    }

    async fn it_hears_before_the_job_is_moved(backend) {
        let moved = Arc::new(Mutex::new(Vec::new()));
        let hook = FnDeadLetterHook::new({
            let (backend, moved) = (backend.clone(), Arc::clone(&moved));
            move |_| {
                moved.lock().unwrap().push(backend.dead_letters("main").len());
                async {}
            }
        });
        let worker = builder(&backend).on_dead_letter(hook).build().await.unwrap();
        backend.publish(&job(), None).await.unwrap();

        drain(worker, &backend).await;

        assert_eq!(*moved.lock().unwrap(), [0]);
        assert_eq!(backend.dead_letters("main").len(), 1);
    }

    async fn its_panic_changes_nothing(backend) {
        let hook = FnDeadLetterHook::new(|_| async { panic!("deaf") });
        let worker = builder(&backend).on_dead_letter(hook).concurrency(1);
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1), Work(2)]).await;

        let report = drain(worker, &backend).await;

        assert_eq!(backend.dead_letters("main").len(), 2);
        assert_eq!(report.counts.dead_lettered, 2);
    }

    async fn the_last_one_set_hears(backend) {
        let (first, last) = (Heard::default(), Heard::default());
        let worker = builder(&backend)
            .on_dead_letter(listener(&first))
            .on_dead_letter(listener(&last));
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        assert_eq!((first.lock().unwrap().len(), last.lock().unwrap().len()), (0, 1));
    }
}
