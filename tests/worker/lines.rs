//! What the operator reads.

use log::Level;
use queuey_rabbitmq::{Backend, JobError, Uuid};

use crate::{
    fault::{Fault, Faulty},
    log_lines::{self, listen},
    *,
};

/// The lines about a job that ends like this, each without the id.
async fn lines(backend: &MemoryBackend, end: fn() -> Result<(), JobError>) -> Vec<(Level, String)> {
    listen();
    let worker = builder(backend).handler_fn(move |_: Twice, _| async move { end() });
    let worker = worker.build().await.unwrap();
    let envelope = raw("twice", "other", "1");
    backend.publish(&envelope, None).await.unwrap();

    during(worker, backend.idle()).await;
    about(envelope.job_id)
}

fn about(id: Uuid) -> Vec<(Level, String)> {
    let id = id.to_string();
    let lines = log_lines::about(&id).into_iter();
    lines
        .map(|(level, line)| (level, line.replace(&id, "ID")))
        .collect()
}

fn line(level: Level, text: &str) -> Vec<(Level, String)> {
    vec![(level, text.into())]
}

/// The lines about a job whose first settlement fails, until it does.
async fn unsettled_line(backend: &MemoryBackend, fault: Fault) -> Vec<(Level, String)> {
    listen();
    let worker =
        Worker::builder(Faulty::new(backend, fault, 1)).handler_fn(|_: Twice, _| async { Ok(()) });
    let worker = worker.build().await.unwrap();
    let handle = worker.handle();
    let envelope = raw("twice", "other", "1");
    backend.publish(&envelope, None).await.unwrap();

    during(worker, until(|| handle.settle_failures() == 1)).await;
    let mut lines = about(envelope.job_id);
    lines.retain(|(level, _)| *level < Level::Info);
    lines
}

facts! {
    async fn a_success_is_for_debugging(backend) {
        let lines = lines(&backend, || Ok(())).await;

        assert_eq!(lines, line(Level::Debug, "job `twice` ID on `other`, attempt 1: done"));
    }

    async fn a_retry_is_one_warning(backend) {
        let lines = lines(&backend, || Err(JobError::retryable("no luck"))).await;

        let text = "job `twice` ID on `other`, attempt 1: failed, attempt 2 follows in 1s: no luck";
        assert_eq!(lines, line(Level::Warn, text));
    }

    async fn a_deferral_is_one_line_of_information(backend) {
        let lines = lines(&backend, || {
            Err(JobError::deferred_because(SECOND, "busy"))
        });

        let text = "job `twice` ID on `other`, attempt 1: deferred for 1s, deferral 1: busy";
        assert_eq!(lines.await, line(Level::Info, text));
    }

    async fn a_dead_letter_is_one_error(backend) {
        let lines = lines(&backend, || Err(JobError::fatal("no luck"))).await;

        let text = "job `twice` ID on `other`, attempt 1: dead-lettered: fatal error: no luck";
        assert_eq!(lines, line(Level::Error, text));
    }

    async fn a_lost_settlement_is_one_warning(backend) {
        let lines = unsettled_line(&backend, Fault::Lost).await;

        let text = "job `twice` ID on `other`, attempt 1: cannot ack, the broker hands it out \
                    again and its outcome is kept: cannot use `main`: the connection to the broker \
                    is gone: cable cut";
        assert_eq!(lines, line(Level::Warn, text));
    }

    async fn a_job_given_back_is_one_error(backend) {
        let lines = unsettled_line(&backend, Fault::Back).await;

        let text = "job `twice` ID on `other`, attempt 1: cannot ack, it goes back to its queue: \
                    cannot use `main`: the connection to the broker is gone: cable cut";
        assert_eq!(lines, line(Level::Error, text));
    }
}
