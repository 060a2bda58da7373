//! Without dead-letter queues of ours: what is dead is rejected.

use queuey_rabbitmq::{
    Backend, Delivery, QueueConfig, RabbitMqBackend, RabbitMqOptions, lapin::BasicProperties,
};

use crate::support::{Broker, jobs::*, until};

async fn declared(broker: &Broker) -> (RabbitMqBackend, QueueConfig) {
    let options = RabbitMqOptions::new().declare_dead_letter_queues(false);
    let backend = broker.backend_with(options).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

pub async fn none_is_declared(broker: Broker) {
    let (backend, queue) = declared(&broker).await;

    assert_eq!(broker.ready(&queue.name).await, Some(0));
    let dead = backend.dead_queue_name(&queue.name);
    assert_eq!(broker.ready(&dead).await, None);
}

pub async fn a_dead_letter_is_gone(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    next(&mut deliveries).await.dead_letter("no").await.unwrap();

    nothing(&mut deliveries).await;
    drop(deliveries);
    assert_eq!(broker.ready(&queue.name).await, Some(0));
}

pub async fn a_malformed_body_is_gone(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    broker
        .publish(&queue.name, b"{", BasicProperties::default())
        .await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);

    nothing(&mut deliveries).await;
    drop(deliveries);
    assert_eq!(broker.ready(&queue.name).await, Some(0));
}

pub async fn what_is_rejected_follows_the_operators_policy(broker: Broker) {
    let theirs = broker.name();
    broker.declare(&theirs, &[]).await;
    let options = RabbitMqOptions::new().declare_dead_letter_queues(false);
    let backend = broker.backend_with(options).await;
    let queue = broker.queue();
    let definition =
        format!(r#"{{"dead-letter-exchange":"","dead-letter-routing-key":"{theirs}"}}"#);
    broker.policy(&queue.name, &definition);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    broker
        .publish(&queue.name, b"\xff\x00", BasicProperties::default())
        .await;
    let job = envelope(&queue, 1);
    backend.publish(&job, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    next(&mut deliveries).await.dead_letter("no").await.unwrap();

    until("both dead letters", async || {
        broker.ready(&theirs).await == Some(2)
    })
    .await;
    let letters = [broker.take(&theirs).await, broker.take(&theirs).await];
    let bodies = letters.map(|letter| letter.expect("a dead letter").body);
    assert!(bodies.contains(&b"\xff\x00".to_vec()));
    assert!(bodies.contains(&job.to_bytes()));
}
