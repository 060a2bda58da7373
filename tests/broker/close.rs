//! Closing a backend.

use futures_lite::future::yield_now;
use queuey_rabbitmq::{Backend, Delivery, RabbitMqBackend, RabbitMqOptions};

use crate::{
    relay::Relay,
    support::{Broker, jobs::*, within},
};

const ROUNDS: u64 = 50;

pub async fn what_was_acked_before_it_never_comes_back(broker: Broker) {
    let queue = broker.queue();
    let publisher = broker.backend().await;
    publisher
        .declare(std::slice::from_ref(&queue))
        .await
        .unwrap();
    let relay = Relay::to(&broker.url);
    for round in 0..ROUNDS {
        let job = envelope(&queue, round);
        publisher.publish(&job, None).await.unwrap();
        let options = RabbitMqOptions::new().runtime(broker.runtime.clone());
        let backend = RabbitMqBackend::with_options(&relay.url, options)
            .await
            .unwrap();
        let mut deliveries = backend.consume(&queue).await.unwrap();
        let delivery = next(&mut deliveries).await;
        assert_eq!((number(&delivery), delivery.redelivered()), (round, false));
        drop(deliveries);
        // How far the subscription has come to its end when the close begins is another each time.
        for _ in 0..round % 10 {
            yield_now().await;
        }
        delivery.ack().await.unwrap();
        within("the end", backend.close()).await.unwrap();
        // Acks are on their way when a connection ends; only a proper end lets the broker see them.
        assert_eq!(relay.farewells() as u64, 2 * (round + 1));
    }
    assert_eq!(broker.ready(&queue.name).await, Some(0));
}
