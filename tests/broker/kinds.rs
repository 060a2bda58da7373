//! Queues that are not durable, and quorum queues.

use queuey_rabbitmq::{
    Backend, Chain, Delivery, Error, QueueConfig, QueueKind, RabbitMqBackend,
    lapin::types::AMQPValue,
};

use crate::{
    options,
    support::{Broker, jobs::*},
};

/// Publishes a job, retries it, defers it and sets it aside.
async fn go_every_way(broker: &Broker, backend: &RabbitMqBackend, queue: &QueueConfig) {
    let mut deliveries = backend.consume(queue).await.unwrap();
    backend.publish(&envelope(queue, 7), None).await.unwrap();
    let first = next(&mut deliveries).await;
    let again = first.envelope().next_attempt();
    first.retry(&again, 1000 * MS).await.unwrap();
    let second = next(&mut deliveries).await;
    let later = second.envelope().deferred(10);
    second.defer(&later, 1000 * MS).await.unwrap();
    let third = next(&mut deliveries).await;
    third.dead_letter("enough").await.unwrap();
    let dead = backend.dead_queue_name(&queue.name);
    let dead = broker.take(&dead).await.expect("a dead letter");
    assert_eq!(dead.envelope(), later);
}

pub async fn a_queue_that_is_not_durable_works_or_is_refused_by_name(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let (queue, other) = (broker.queue().durable(false), broker.queue());

    let declared = backend.declare(std::slice::from_ref(&queue)).await;

    match declared {
        Ok(()) => go_every_way(&broker, &backend, &queue).await,
        Err(error) => {
            let words = Chain(&error).to_string();
            assert!(words.contains(&queue.name), "{words}");
            assert!(!matches!(error, Error::Disconnected { .. }), "{words}");
        }
    }
    backend.declare(std::slice::from_ref(&other)).await.unwrap();
    go_every_way(&broker, &backend, &other).await;
}

pub async fn a_quorum_queue_that_is_not_durable_is_refused_by_name(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue().kind(QueueKind::Quorum).durable(false);

    let refused = backend.declare(std::slice::from_ref(&queue)).await;

    let words = Chain(&refused.unwrap_err()).to_string();
    assert!(words.contains(&queue.name), "{words}");
    let other = broker.queue();
    backend.declare(std::slice::from_ref(&other)).await.unwrap();
    go_every_way(&broker, &backend, &other).await;
}

pub async fn a_quorum_queue_and_its_dead_letter_queue_are_both_quorum(broker: Broker) {
    let backend = broker.backend().await;
    let queue = broker.queue().kind(QueueKind::Quorum);

    backend.declare(std::slice::from_ref(&queue)).await.unwrap();

    let quorum = [("x-queue-type", AMQPValue::LongString("quorum".into()))];
    broker.declare(&queue.name, &quorum).await;
    let dead = backend.dead_queue_name(&queue.name);
    broker.declare(&dead, &quorum).await;
}

pub async fn a_job_goes_every_way_on_a_quorum_queue(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue().kind(QueueKind::Quorum);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();

    go_every_way(&broker, &backend, &queue).await;
}

pub async fn deferrals_of_a_quorum_queue_all_return(broker: Broker) {
    let backend = broker.backend_with(options(1000 * MS)).await;
    let queue = broker.queue().kind(QueueKind::Quorum);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();

    for number in 0..50 {
        let job = envelope(&queue, number).deferred(10);
        backend.defer(&job, 1000 * MS).await.unwrap();
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();
    let mut numbers = ack_numbers(&mut deliveries, 50).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
}
