//! Publish before ack: a job whose successor is not stored stays in hand.

use queuey_rabbitmq::{
    Backend, Delivery, Error, QueueConfig, RabbitMqBackend, RabbitMqDeliveries, RabbitMqDelivery,
    lapin::BasicProperties, lapin::types::AMQPValue,
};

use crate::support::{Broker, jobs::*, until};

async fn declared(broker: &Broker) -> (RabbitMqBackend, QueueConfig) {
    let backend = broker.backend().await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

async fn in_hand(
    backend: &RabbitMqBackend,
    queue: &QueueConfig,
) -> (RabbitMqDeliveries, RabbitMqDelivery) {
    backend.publish(&envelope(queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(queue).await.unwrap();
    let delivery = next(&mut deliveries).await;
    (deliveries, delivery)
}

pub async fn a_job_stays_in_hand_when_its_dead_letter_queue_is_gone(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let dead = backend.dead_queue_name(&queue.name);
    let (mut deliveries, delivery) = in_hand(&backend, &queue).await;
    broker.delete(&dead).await;

    let refused = delivery.dead_letter("no").await.unwrap_err();

    assert!(matches!(&refused.error, Error::Unroutable { queue, .. } if *queue == dead));
    let delivery = refused.delivery.expect("nothing was acked");
    assert_eq!(broker.ready(&queue.name).await, Some(0));
    nothing(&mut deliveries).await;
    drop(delivery);
    let again = next(&mut deliveries).await;
    assert!(again.redelivered());
    assert_eq!(number(&again), 1);
}

pub async fn a_job_in_hand_after_a_failed_dead_letter_can_be_settled(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let dead = backend.dead_queue_name(&queue.name);
    let (_deliveries, delivery) = in_hand(&backend, &queue).await;
    broker.delete(&dead).await;
    let refused = delivery.dead_letter("no").await.unwrap_err();

    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let delivery = refused.delivery.expect("nothing was acked");
    delivery.dead_letter("yes").await.unwrap();

    let letter = broker.take(&dead).await.expect("a dead letter");
    assert_eq!(letter.header("x-death-reason").as_deref(), Some("yes"));
    assert_eq!(broker.ready(&queue.name).await, Some(0));
}

pub async fn a_job_stays_in_hand_when_it_would_wait_for_an_unknown_queue(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let elsewhere = envelope(&broker.queue(), 1);
    let body = elsewhere.to_bytes();
    broker
        .publish(&queue.name, &body, BasicProperties::default())
        .await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;
    let again = delivery.envelope().next_attempt();

    let retried = delivery.retry(&again, MS).await.unwrap_err();
    let delivery = retried.delivery.expect("nothing was acked");
    let deferred = delivery.defer(&again, MS).await.unwrap_err();

    for error in [&retried.error, &deferred.error] {
        assert!(matches!(error, Error::UnknownQueue(name) if *name == elsewhere.queue));
    }
    drop(deferred.delivery.expect("nothing was acked"));
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
}

pub async fn a_full_queue_refuses_by_name(broker: Broker) {
    let queue = broker.queue();
    let full = [
        ("x-queue-type", AMQPValue::LongString("classic".into())),
        ("x-max-length", AMQPValue::LongLongInt(1)),
        ("x-overflow", AMQPValue::LongString("reject-publish".into())),
    ];
    broker.declare(&queue.name, &full).await;
    let backend = broker.backend().await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    let refused = backend.publish(&envelope(&queue, 2), None).await;

    assert!(matches!(refused, Err(Error::Nacked { queue: named }) if named == queue.name));
    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
    nothing(&mut deliveries).await;
}

pub async fn a_full_queue_takes_jobs_again_when_there_is_room(broker: Broker) {
    let queue = broker.queue();
    let full = [
        ("x-queue-type", AMQPValue::LongString("classic".into())),
        ("x-max-length", AMQPValue::LongLongInt(1)),
        ("x-overflow", AMQPValue::LongString("reject-publish".into())),
    ];
    broker.declare(&queue.name, &full).await;
    let backend = broker.backend().await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    backend
        .publish(&envelope(&queue, 2), None)
        .await
        .unwrap_err();

    broker.take(&queue.name).await.expect("the first job");

    until("room for a job", async || {
        backend.publish(&envelope(&queue, 3), None).await.is_ok()
    })
    .await;
}

pub async fn a_job_stays_in_hand_when_its_dead_letter_queue_is_full(broker: Broker) {
    let queue = broker.queue();
    let backend = broker.backend().await;
    let dead = backend.dead_queue_name(&queue.name);
    broker.policy(&dead, r#"{"max-length":1,"overflow":"reject-publish"}"#);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let (mut deliveries, first) = in_hand(&backend, &queue).await;
    first.dead_letter("the first fits").await.unwrap();
    backend.publish(&envelope(&queue, 2), None).await.unwrap();
    let second = next(&mut deliveries).await;

    let refused = second.dead_letter("the second does not").await.unwrap_err();

    assert!(matches!(&refused.error, Error::Nacked { queue } if *queue == dead));
    drop(refused.delivery.expect("nothing was acked"));
    assert!(next(&mut deliveries).await.redelivered());
}
