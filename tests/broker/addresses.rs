//! Several addresses of one broker.

use queuey_rabbitmq::{
    Addresses, Backend, Backoff, BackoffPolicy, RabbitMqBackend, RabbitMqOptions,
};

use crate::{
    relay::Relay,
    support::{Broker, jobs::*, within},
};

async fn connect(broker: &Broker, addresses: Addresses) -> RabbitMqBackend {
    let policy = BackoffPolicy::new().backoff(Backoff::Fixed(100 * MS));
    let options = RabbitMqOptions::new()
        .reconnect_with(policy)
        .runtime(broker.runtime.clone());
    let connected = RabbitMqBackend::with_options(addresses, options);
    within("a connection", connected).await.unwrap()
}

/// How many declares of `queue` went through each.
fn declares(relays: &[Relay; 2], queue: &str) -> [usize; 2] {
    [relays[0].declares(queue), relays[1].declares(queue)]
}

pub async fn the_next_is_tried_when_one_does_not_answer(broker: Broker) {
    let nobody = "amqp://127.0.0.1:1";
    let addresses = Addresses::try_from([nobody, broker.url.as_str()]).unwrap();

    let backend = connect(&broker, addresses).await;

    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
}

pub async fn a_lost_connection_comes_back_at_another_with_its_queues(broker: Broker) {
    let relays = [Relay::to(&broker.url), Relay::to(&broker.url)];
    let addresses = Addresses::try_from([&relays[0].url, &relays[1].url]).unwrap();
    let backend = connect(&broker, addresses).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    assert_eq!(declares(&relays, &queue.name), [1, 0]);

    relays[0].refuse(true);
    relays[0].cut();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    assert_eq!(declares(&relays, &queue.name), [1, 1]);
    assert_eq!(broker.ready(&queue.name).await, Some(1));
}

pub async fn shuffled_dials_spread_over_all(broker: Broker) {
    let relays = [Relay::to(&broker.url), Relay::to(&broker.url)];
    let addresses = Addresses::try_from([&relays[0].url, &relays[1].url]).unwrap();
    let queue = broker.queue();

    for _ in 0..40 {
        let backend = connect(&broker, addresses.clone().shuffled()).await;
        backend.declare(std::slice::from_ref(&queue)).await.unwrap();
        backend.close().await.unwrap();
    }

    let [first, second] = declares(&relays, &queue.name);
    assert_eq!(first + second, 40);
    assert!(first > 0 && second > 0, "{first} and {second}");
}
