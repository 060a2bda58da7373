//! How a job failed, in a header of its messages.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use futures_lite::future;
use queuey_rabbitmq::{
    Backend, Failure, JobError, QueueConfig, RabbitMqBackend, RabbitMqOptions, RetryPolicy, Worker,
    codec,
    lapin::{
        BasicProperties,
        types::{AMQPValue, FieldTable},
    },
};

use crate::{
    options,
    support::{Broker, Message, jobs::*},
};

/// On a busy machine a shorter hold is not sure to outlast a publish, and the job is held twice.
const WAIT: Duration = Duration::from_secs(1);

/// Runs the one job of `queue` once, which fails with this text; the last of three attempts.
async fn fail(backend: &RabbitMqBackend, queue: &QueueConfig, text: &str) {
    let (text, failed) = (text.to_owned(), AtomicBool::new(false));
    let builder = Worker::builder(backend.clone())
        .queues(&[named(queue)])
        .job_retry_override::<Number>(RetryPolicy::fixed(3, WAIT))
        .concurrency(1)
        .shutdown_grace(Duration::ZERO)
        .shutdown_deadline(Duration::ZERO)
        .handler_fn(move |Number(_), _| {
            let is_first = !failed.swap(true, SeqCst);
            let error = JobError::retryable(text.clone());
            async move {
                if !is_first {
                    // Left to the next worker.
                    future::pending::<()>().await;
                }
                Err(error)
            }
        });
    run_until(builder, "a failed run", |counts| {
        counts.retried + counts.dead_lettered >= 1
    })
    .await;
}

async fn dead_letter(broker: &Broker, backend: &RabbitMqBackend, queue: &QueueConfig) -> Message {
    let dead = backend.dead_queue_name(&queue.name);
    broker.take(&dead).await.expect("a dead letter")
}

fn told(failure: &Failure) -> Vec<(u32, &str)> {
    let earlier = failure.earlier.iter();
    earlier.map(|it| (it.attempt, &*it.error)).collect()
}

async fn declared(broker: &Broker) -> (RabbitMqBackend, QueueConfig) {
    let backend = broker.backend_with(options(WAIT)).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

pub async fn it_goes_from_one_process_to_the_next(broker: Broker) {
    let (first, queue) = declared(&broker).await;
    let second = broker.backend_with(options(WAIT)).await;
    first.publish(&envelope(&queue, 1), None).await.unwrap();

    fail(&first, &queue, "one").await;
    fail(&second, &queue, "two").await;
    fail(&first, &queue, "three").await;

    let letter = dead_letter(&broker, &first, &queue).await;
    let failure = codec::failure(&letter.properties).expect("a failure");
    assert_eq!((failure.attempt, failure.to_string()), (3, "three".into()));
    assert_eq!(told(&failure), [(1, "one"), (2, "two")]);
    assert_eq!(letter.header("x-attempts").as_deref(), Some("3"));
    let reason = letter.header("x-death-reason");
    assert_eq!(reason.as_deref(), Some("gave up after 3 attempts: three"));
}

pub async fn a_dead_letter_that_an_operator_moves_back_keeps_it(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let mut job = envelope(&queue, 1);
    job.attempt = 3;
    backend.publish(&job, None).await.unwrap();
    fail(&backend, &queue, "before").await;
    let Message {
        body, properties, ..
    } = dead_letter(&broker, &backend, &queue).await;

    broker.publish(&queue.name, &body, properties).await;
    fail(&backend, &queue, "after").await;

    let letter = dead_letter(&broker, &backend, &queue).await;
    let failure = codec::failure(&letter.properties).expect("a failure");
    assert_eq!(told(&failure), [(3, "before")]);
    assert_eq!(failure.to_string(), "after");
    assert!(failure.first_failed_at_ms < failure.failed_at_ms);
}

pub async fn a_megabyte_of_it_fits_the_smallest_frame(broker: Broker) {
    let url = format!("{}?frame_max=8192", broker.url);
    let options = RabbitMqOptions::new().runtime(broker.runtime.clone());
    let options = options.retry_granularity(WAIT);
    let backend = RabbitMqBackend::with_options(url, options).await.unwrap();
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    // In JSON, each of these takes six bytes.
    let text = "\u{1}".repeat(1_000_000);
    for _ in 1..=3 {
        fail(&backend, &queue, &text).await;
    }

    let letter = dead_letter(&broker, &backend, &queue).await;
    let failure = codec::failure(&letter.properties).expect("a failure");
    assert_eq!((failure.attempt, failure.earlier.len()), (3, 2));
    assert!(letter.header("x-death-reason").unwrap().len() > 4_000);
}

pub async fn a_foreign_header_in_its_place_is_ignored(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let text = |text: &str| AMQPValue::LongString(text.into());
    let foreign = [
        AMQPValue::FieldTable(FieldTable::default()),
        AMQPValue::Boolean(true),
        text("{\"attempt\":1"),
        text(&"[".repeat(60_000)),
    ];
    for value in foreign.clone() {
        let mut headers = FieldTable::default();
        headers.insert(codec::FAILURE.into(), value);
        let properties = BasicProperties::default().with_headers(headers);
        let mut job = envelope(&queue, 1);
        job.attempt = 3;
        broker
            .publish(&queue.name, &job.to_bytes(), properties)
            .await;

        fail(&backend, &queue, "no").await;

        let letter = dead_letter(&broker, &backend, &queue).await;
        let failure = codec::failure(&letter.properties).expect("a failure");
        assert_eq!((failure.to_string(), told(&failure)), ("no".into(), vec![]));
    }
}
