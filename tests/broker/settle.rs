//! Settling when something is in the way.

use futures_lite::StreamExt;
use queuey_rabbitmq::{
    Backend, Delivery, Envelope, Error, QueueConfig, RabbitMqBackend, RabbitMqDeliveries,
    RabbitMqDelivery, RabbitMqOptions, Result, lapin::BasicProperties,
};

use crate::{
    relay::Relay,
    support::{Broker, jobs::*, until, within},
};

async fn in_hand(
    broker: &Broker,
    backend: &RabbitMqBackend,
) -> (QueueConfig, RabbitMqDeliveries, RabbitMqDelivery) {
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;
    (queue, deliveries, delivery)
}

fn is_disconnected<T>(answer: &Result<T>) -> bool {
    matches!(answer, Err(Error::Disconnected { .. }))
}

pub async fn an_ack_on_a_dead_connection_is_a_failed_settlement(broker: Broker) {
    let backend = broker.backend().await;
    let (_, _, delivery) = in_hand(&broker, &backend).await;

    backend.close().await.unwrap();
    let acked = within("an answer", delivery.ack()).await;

    assert!(matches!(
        acked.unwrap_err().error,
        Error::Disconnected { .. }
    ));
}

/// Checks what a caller sees of a lost broker, and that the job in hand is not lost.
async fn assert_lost(
    broker: &Broker,
    backend: &RabbitMqBackend,
    (queue, mut deliveries, delivery): (QueueConfig, RabbitMqDeliveries, RabbitMqDelivery),
) {
    let end = within("the end", deliveries.next()).await;
    assert!(is_disconnected(&end.expect("an error first")));
    assert!(within("the end", deliveries.next()).await.is_none());
    let acked = within("an answer", delivery.ack()).await.unwrap_err();
    assert!(acked.delivery.is_none());
    assert!(matches!(acked.error, Error::Disconnected { .. }));
    until("the loss is seen", async || !backend.is_connected()).await;

    let job = envelope(&queue, 2);
    let answers = within("answers", async {
        [
            backend.publish(&job, None).await,
            backend.publish(&job, Some(MS)).await,
            backend.defer(&job, MS).await,
            backend.declare(std::slice::from_ref(&queue)).await,
            backend.consume(&queue).await.map(drop),
        ]
    })
    .await;
    assert!(answers.iter().all(is_disconnected), "{answers:?}");

    let fresh = broker.backend().await;
    let mut deliveries = fresh.consume(&queue).await.unwrap();
    let again = next(&mut deliveries).await;
    assert_eq!((number(&again), again.redelivered()), (1, true));
    again.ack().await.unwrap();
}

pub async fn a_connection_closed_by_the_operator_is_lost_to_all(broker: Broker) {
    let name = broker.name();
    let options = RabbitMqOptions::new()
        .reconnect(None)
        .connection_name(&*name);
    let backend = broker.backend_with(options).await;
    let in_hand = in_hand(&broker, &backend).await;

    broker.close_connections(&name);

    assert_lost(&broker, &backend, in_hand).await;
}

pub async fn what_exceeds_our_own_limit_can_still_be_dead(broker: Broker) {
    let options = RabbitMqOptions::new().max_message_size(1000);
    let backend = broker.backend_with(options).await;
    let queue = broker.queue().prefetch(1);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let text = serde_json::value::to_raw_value(&"x".repeat(2000)).unwrap();
    let job = Envelope::raw("large", &queue.name, text);
    for body in [&job.to_bytes()[..], &[b'{'; 2000]] {
        let properties = BasicProperties::default();
        broker.publish(&queue.name, body, properties).await;
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();
    let large = next(&mut deliveries).await;
    let retried = large.retry(&job.next_attempt(), MS).await.unwrap_err();
    assert!(matches!(retried.error, Error::PayloadTooLarge { .. }));
    let large = retried.delivery.unwrap();
    large
        .dead_letter("too large for another try")
        .await
        .unwrap();

    // The malformed one comes behind it.
    nothing(&mut deliveries).await;
    let dead = backend.dead_queue_name(&queue.name);
    until("both", async || broker.ready(&dead).await == Some(2)).await;
    let enqueued = backend.publish(&job, None).await.unwrap_err();
    assert!(matches!(enqueued, Error::PayloadTooLarge { .. }));
}

pub async fn a_broken_link_is_a_connection_lost_to_all(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let options = RabbitMqOptions::new()
        .reconnect(None)
        .runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&relay.url, options)
        .await
        .unwrap();
    let in_hand = in_hand(&broker, &backend).await;

    relay.cut();

    assert_lost(&broker, &backend, in_hand).await;
}

pub async fn settling_after_the_loss_never_succeeds(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let options = crate::options(MS)
        .reconnect(None)
        .runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&relay.url, options)
        .await
        .unwrap();
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    for number in 0..4 {
        let job = envelope(&queue, number);
        backend.publish(&job, None).await.unwrap();
    }
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let mut held = vec![];
    for _ in 0..4 {
        held.push(next(&mut deliveries).await);
    }

    relay.cut();
    within("the end", deliveries.next()).await;
    until("the loss is seen", async || !backend.is_connected()).await;

    let again = held[0].envelope().next_attempt();
    let [first, second, third, fourth] = held.try_into().unwrap();
    let errors = within("answers", async {
        [
            first.release().await.unwrap_err().error,
            second.retry(&again, MS).await.unwrap_err().error,
            third.defer(&again, MS).await.unwrap_err().error,
            fourth.dead_letter("lost").await.unwrap_err().error,
        ]
    })
    .await;
    for error in errors {
        assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
    }
    until("all back", async || {
        broker.ready(&queue.name).await == Some(4)
    })
    .await;
}
