//! Queues that are not durable.

use queuey_rabbitmq::{Backend, Chain, Delivery, Error, QueueConfig, RabbitMqBackend};

use crate::{
    options,
    support::{Broker, jobs::*},
};

/// Publishes a job, retries it, defers it and sets it aside.
pub async fn go_every_way(broker: &Broker, backend: &RabbitMqBackend, queue: &QueueConfig) {
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
