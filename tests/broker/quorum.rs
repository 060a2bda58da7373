//! Quorum queues: what they need, and what becomes of a job that ends its consumers.

use futures_lite::StreamExt;
use queuey_rabbitmq::{
    Backend, Chain, Delivery, QueueConfig, QueueKind, RabbitMqBackend, RabbitMqOptions,
    lapin::{
        options::{BasicConsumeOptions, BasicQosOptions},
        types::{AMQPValue, FieldTable},
    },
};

use crate::{
    kinds::go_every_way,
    options,
    support::{Broker, jobs::*, until, version, within},
};

/// What every quorum queue of a test starts with; nothing on a broker that is too old for one,
/// which [`it_needs_rabbitmq_4`] makes sure of.
pub async fn declared(
    broker: &Broker,
    options: RabbitMqOptions,
) -> Option<(RabbitMqBackend, QueueConfig)> {
    let backend = broker.backend_with(options).await;
    let queue = broker.queue().kind(QueueKind::Quorum);
    match backend.declare(std::slice::from_ref(&queue)).await {
        Ok(()) => Some((backend, queue)),
        Err(error) => {
            let words = Chain(&error).to_string();
            assert!(words.contains("needs RabbitMQ 4.0 or later"), "{words}");
            assert!(words.contains(&queue.name), "{words}");
            None
        }
    }
}

pub async fn it_needs_rabbitmq_4(broker: Broker) {
    let declared = declared(&broker, options(MS)).await;

    if let Some(version) = version() {
        assert_eq!(declared.is_some(), version >= (4, 0));
    }
    if declared.is_none() {
        let (backend, other) = (broker.backend_with(options(MS)).await, broker.queue());
        backend.declare(std::slice::from_ref(&other)).await.unwrap();
        go_every_way(&broker, &backend, &other).await;
    }
}

pub async fn it_is_refused_by_name_when_it_is_not_durable(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue().kind(QueueKind::Quorum).durable(false);

    let refused = backend.declare(std::slice::from_ref(&queue)).await;

    let words = Chain(&refused.unwrap_err()).to_string();
    assert!(words.contains(&queue.name), "{words}");
    let other = broker.queue();
    backend.declare(std::slice::from_ref(&other)).await.unwrap();
    go_every_way(&broker, &backend, &other).await;
}

pub async fn it_and_its_dead_letter_queue_have_the_documented_arguments(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let dead = backend.dead_queue_name(&queue.name);

    let text = |text: &str| AMQPValue::LongString(text.into());
    let limit = |times| ("x-delivery-limit", AMQPValue::LongLongInt(times));
    let quorum = ("x-queue-type", text("quorum"));
    let arguments = [
        quorum.clone(),
        limit(100),
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&dead)),
        ("x-dead-letter-strategy", text("at-least-once")),
        ("x-overflow", text("reject-publish")),
    ];
    broker.declare(&queue.name, &arguments).await;
    broker.declare(&dead, &[quorum, limit(-1)]).await;
}

pub async fn a_job_goes_every_way(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };

    go_every_way(&broker, &backend, &queue).await;
}

/// Consumes a job and closes the channel, as the end of a process does.
async fn end_a_consumer(broker: &Broker, queue: &str) {
    let channel = broker.channel().await;
    let qos = BasicQosOptions::default();
    channel.basic_qos(1, qos).await.unwrap();
    let (options, none) = (BasicConsumeOptions::default(), FieldTable::default());
    let consumer = channel.basic_consume(queue.into(), "".into(), options, none);
    let mut consumer = consumer.await.unwrap();
    let job = within("a job to end with", consumer.next()).await;
    job.unwrap().unwrap();
    channel.close(200, "ended".into()).await.unwrap();
}

pub async fn a_job_that_ends_every_consumer_is_dead_with_a_reason(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let job = envelope(&queue, 1);
    backend.publish(&job, None).await.unwrap();

    for _ in 0..=100 {
        end_a_consumer(&broker, &queue.name).await;
    }

    let dead = backend.dead_queue_name(&queue.name);
    until("the dead letter", async || {
        broker.ready(&dead).await == Some(1)
    })
    .await;
    let letter = broker.take(&dead).await.unwrap();
    assert_eq!(letter.envelope(), job);
    let header = |name| letter.header(name).unwrap();
    assert_eq!(header("x-first-death-reason"), "delivery_limit");
    assert_eq!(header("x-first-death-queue"), queue.name);
}

pub async fn a_job_given_back_at_many_shutdowns_is_still_there(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    // More often than a broker's own limit allows.
    for _ in 0..30 {
        let mut deliveries = backend.consume(&queue).await.unwrap();
        next(&mut deliveries).await.release().await.unwrap();
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
}
