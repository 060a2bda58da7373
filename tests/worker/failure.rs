//! What is known of how a job failed.

use std::{
    error, fmt,
    panic::{Location, panic_any, resume_unwind},
    sync::{Arc, Mutex},
};

use queuey_rabbitmq::{
    Backend, DeadLetterCause, Failure, FailureKind, FnDeadLetterHook, JobContext, JobError,
};

use crate::*;

/// An error of so many links, the innermost last.
#[derive(Debug)]
struct Link(u32, Option<Box<Link>>);

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

impl error::Error for Link {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.1.as_deref().map(|link| link as _)
    }
}

fn links(count: u32) -> Link {
    let inner = (1..count)
        .rev()
        .fold(None, |inner, number| Some(Box::new(Link(number, inner))));
    Link(0, inner)
}

/// What is known of the job `Work(1)` that fails like this until it is dead, after so many attempts.
async fn failed<R>(
    backend: &MemoryBackend,
    attempts: u32,
    run: impl Fn(JobContext) -> R + Send + Sync + 'static,
) -> Failure
where
    R: Future<Output = Result<(), JobError>> + Send + 'static,
{
    let worker = builder(backend)
        .handler_fn(move |_: Work, ctx| run(ctx))
        .retry_override(Queue::Main, RetryPolicy::fixed(attempts, SECOND))
        .job_timeout(Duration::from_millis(50));
    let worker = worker.build().await.unwrap();
    enqueue(backend, [Work(1)]).await;
    drain(worker, backend).await;
    dead(backend)
}

fn dead(backend: &MemoryBackend) -> Failure {
    let (envelope, _) = backend.dead_letters("main").remove(0);
    envelope.failure().expect("a record").clone()
}

fn told(errors: &Failure) -> Vec<(u32, &str)> {
    let earlier = errors.earlier.iter();
    earlier.map(|it| (it.attempt, &*it.error)).collect()
}

/// Where this is called, as a record says it.
#[track_caller]
fn here() -> String {
    Location::caller().to_string()
}

facts! {
    async fn an_error_is_known_by_type_chain_and_place(backend) {
        let failure = failed(&backend, 1, |_| async { Err(links(3))? }).await;

        assert_eq!(failure.kind, FailureKind::Error);
        assert!(failure.error_type.as_ref().unwrap().ends_with("failure::Link"));
        assert_eq!(failure.chain, ["link 0", "link 1", "link 2"]);
        let place = failure.place.as_ref().unwrap();
        assert!(place.starts_with("tests/worker/failure.rs:"), "{place}");
        assert_eq!(failure.to_string(), "link 0: link 1: link 2");
    }

    async fn a_text_has_no_type(backend) {
        for error in [
            || JobError::retryable("no"),
            || JobError::fatal(String::from("no")),
            || JobError::retryable(queuey_rabbitmq::BoxError::from("no")),
        ] {
            let backend = backend.clone();
            let failure = failed(&backend, 1, move |_| async move { Err(error()) }).await;

            assert_eq!((failure.error_type, failure.chain), (None, vec!["no".into()]));
        }
    }

    async fn a_panic_is_known_by_message_and_place(backend) {
        let places = Arc::new(Mutex::new(String::new()));
        let place = Arc::clone(&places);
        let failure = failed(&backend, 1, move |_| {
            let place = Arc::clone(&place);
            async move {
                *place.lock().unwrap() = here(); panic!("number {}", 5)
            }
        });
        let failure = failure.await;

        assert_eq!(failure.kind, FailureKind::Panic);
        assert_eq!((failure.error_type, &*failure.chain), (None, &["number 5".to_owned()][..]));
        // The same line, further to the right.
        let line = |place: &str| place.rsplit_once(':').unwrap().0.to_owned();
        assert_eq!(line(&failure.place.unwrap()), line(&places.lock().unwrap()));
    }

    async fn a_panic_that_says_nothing_has_a_place(backend) {
        let failure = failed(&backend, 1, |_| async { panic_any(5) }).await;

        assert!(failure.place.unwrap().starts_with("tests/worker/failure.rs:"));
        assert_eq!(failure.chain, ["a non-text payload"]);
    }

    async fn a_panic_without_a_place_gets_none_of_another(backend) {
        let failure = failed(&backend, 1, |_| async {
            let _ = std::panic::catch_unwind(|| panic!("inner"));
            resume_unwind(Box::new("outer"))
        });

        assert_eq!(failure.await.place, None);
    }

    async fn a_timeout_is_one(backend) {
        let failure = failed(&backend, 1, |_| future::pending()).await;

        assert_eq!(failure.kind, FailureKind::Timeout);
        assert_eq!(failure.chain, ["timed out after 50ms"]);
    }

    async fn a_failure_elsewhere_is_recorded_as_it_is_told(backend) {
        let told = || {
            let mut told = Failure::new(9, "no mail");
            told.kind = FailureKind::Timeout;
            told.chain.push("x".repeat(100_000));
            told.place = Some("mail.py:7".into());
            (told.pid, told.cause) = (1, Some(DeadLetterCause::NoHandler));
            told
        };

        let failure = failed(&backend, 2, move |_| async move { Err(told())? }).await;

        assert_eq!((failure.kind, failure.attempt), (FailureKind::Timeout, 2));
        assert_eq!((failure.error_type, failure.place.as_deref()), (None, Some("mail.py:7")));
        assert_eq!((&*failure.chain[0], failure.chain[1].len()), ("no mail", 1024));
        assert_eq!((failure.pid, failure.cause), (std::process::id(), Some(DeadLetterCause::Exhausted)));
        assert_eq!(failure.earlier.len(), 1);
    }

    async fn it_says_when_and_where_it_ran(backend) {
        let before = Envelope::raw("work", "main", Default::default()).enqueued_at_ms;

        let failure = failed(&backend, 2, |_| async { Err(JobError::retryable("no")) }).await;

        assert!(!failure.host.is_empty());
        assert_eq!(failure.pid, std::process::id());
        assert_eq!(failure.first_failed_at_ms, failure.earlier[0].at_ms);
        assert!(before <= failure.first_failed_at_ms);
        assert!(failure.first_failed_at_ms <= failure.failed_at_ms);
        assert!(failure.failed_at_ms <= before + 20_000);
    }

    async fn earlier_attempts_are_told_in_order(backend) {
        let failure = failed(&backend, 3, |ctx| async move {
            match ctx.attempt {
                1 => Err(JobError::retryable(links(2))),
                2 => panic!("second"),
                _ => Err(JobError::fatal("third")),
            }
        });
        let failure = failure.await;

        assert_eq!((failure.attempt, failure.to_string()), (3, "third".into()));
        assert_eq!(told(&failure), [(1, "link 0: link 1"), (2, "second")]);
    }

    async fn a_handler_knows_how_the_last_attempt_failed(backend) {
        let failure = failed(&backend, 3, |ctx| async move {
            Err(JobError::retryable(match ctx.last_failure() {
                None => "nothing before".into(),
                Some(last) => format!("{} after {} ({last})", ctx.attempt, last.attempt),
            }))
        });

        assert_eq!(failure.await.to_string(), "3 after 2 (2 after 1 (nothing before))");
    }

    async fn a_deferral_keeps_it(backend) {
        let failure = failed(&backend, 2, |ctx| async move {
            match (ctx.attempt, ctx.deferrals) {
                (2, 0) => Err(JobError::deferred(SECOND)),
                (attempt, _) => Err(JobError::retryable(format!("no {attempt}"))),
            }
        });

        assert_eq!(told(&failure.await), [(1, "no 1")]);
    }

    async fn the_oldest_attempts_are_left_out(backend) {
        let failure = failed(&backend, 40, |ctx| async move {
            Err(JobError::retryable(format!("no {}", ctx.attempt)))
        });

        let failure = failure.await;
        let attempts: Vec<_> = failure.earlier.iter().map(|it| it.attempt).collect();
        assert_eq!(attempts, Vec::from_iter(24..40));
        assert!(failure.first_failed_at_ms <= failure.earlier[0].at_ms);
    }

    async fn a_megabyte_of_text_is_cut(backend) {
        let failure = failed(&backend, 2, |_| async {
            Err(JobError::retryable("\u{1}ß".repeat(400_000)))
        });

        let failure = failure.await;
        let reason = backend.dead_letters("main").remove(0).1;
        assert!(reason.len() > 1_000_000, "the reason is whole in memory");
        for text in [&failure.chain[0], &failure.earlier[0].error] {
            assert!((10..=1024).contains(&text.len()) && text.starts_with("\u{1}ß"));
        }
        assert!(serde_json::to_string(&failure).unwrap().len() <= Failure::MAX_BYTES);
    }

    async fn a_deep_chain_keeps_its_ends(backend) {
        let failure = failed(&backend, 1, |_| async { Err(JobError::retryable(links(3_000))) });

        let chain = failure.await.chain;
        assert_eq!((chain.len(), &*chain[0], &*chain[1]), (16, "link 0", "link 1"));
        assert_eq!(chain[15], "link 2999");
    }

    async fn each_cause_is_told(backend) {
        for (envelope, end, cause, text) in [
            (raw("work", "main", "1"), 0, DeadLetterCause::Exhausted, "no"),
            (raw("work", "main", "1"), 1, DeadLetterCause::Fatal, "no"),
            (raw("work", "main", "1"), 2, DeadLetterCause::Refused, "cannot hold a job"),
            (raw("work", "main", "{}"), 0, DeadLetterCause::Decode, "invalid type: map"),
            (raw("mystery", "main", "1"), 0, DeadLetterCause::NoHandler, "no handler for job type"),
        ] {
            let worker = builder(&backend).handler_fn(move |_: Work, _| async move {
                Err(match end {
                    0 => JobError::retryable("no"),
                    1 => JobError::fatal("no"),
                    _ => JobError::deferred(Duration::MAX),
                })
            });
            let worker = worker.build().await.unwrap();
            backend.publish(&envelope, None).await.unwrap();
            drain(worker, &backend).await;

            let failure = backend.dead_letters("main").pop().unwrap().0.failure().cloned();
            let failure = failure.unwrap();
            assert_eq!(failure.cause, Some(cause));
            assert!(failure.to_string().starts_with(text), "{failure}");
        }
    }

    async fn the_hook_reads_what_the_dead_letter_carries(backend) {
        let heard = Arc::new(Mutex::new(None));
        let hook = FnDeadLetterHook::new({
            let heard = Arc::clone(&heard);
            move |letter| {
                *heard.lock().unwrap() = letter.failure().cloned();
                async {}
            }
        });
        let worker = builder(&backend)
            .handler_fn(|_: Work, _| async { Err(links(2))? })
            .on_dead_letter(hook);
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        assert_eq!(heard.lock().unwrap().take(), Some(dead(&backend)));
    }

    async fn a_redriven_job_keeps_its_history(backend) {
        failed(&backend, 2, |ctx| async move {
            Err(JobError::retryable(format!("no {}", ctx.attempt)))
        })
        .await;
        let (mut envelope, _) = backend.dead_letters("main").remove(0);

        envelope.attempt = 1;
        let worker = builder(&backend).handler_fn(|_: Work, _| async { Err(links(1))? });
        backend.publish(&envelope, None).await.unwrap();
        drain(worker.build().await.unwrap(), &backend).await;

        let failure = backend.dead_letters("main")[1].0.failure().unwrap().clone();
        assert_eq!(told(&failure), [(1, "no 1"), (2, "no 2")]);
        assert_eq!((failure.attempt, failure.to_string()), (1, "link 0".into()));
    }

    async fn a_success_leaves_none(backend) {
        let worker = builder(&backend).handler_fn(|_: Work, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        drain(worker, &backend).await;

        assert_eq!(backend.acked("main")[0].failure(), None);
    }
}
