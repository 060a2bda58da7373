//! What a worker says of its subscriptions, for a health endpoint.

use std::time::Instant;

use queuey_rabbitmq::{Backend, QueueHealth};

use crate::{
    load::{Load, beside},
    quick,
    relay::Relay,
    support::{Broker, jobs::*, until},
    through,
};

pub async fn a_worker_is_unhealthy_for_as_long_as_the_broker_is_away(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let (direct, cut) = (
        broker.backend().await,
        through(&broker, &relay, quick()).await,
    );
    let load = Load::on(&direct, broker.queue()).await;
    cut.declare(std::slice::from_ref(&load.queue))
        .await
        .unwrap();
    let worker = load.worker(&cut, MS).build().await.unwrap();
    let handle = worker.handle();
    let health = || -> QueueHealth { handle.health().remove(0) };
    assert_eq!(
        (health().queue, health().subscribed),
        (load.queue.name.clone(), false)
    );

    beside(worker, async {
        until("a subscription", async || health().subscribed).await;
        assert_eq!((health().resubscribed, health().last_delivery), (0, None));
        let before = Instant::now();
        load.enqueue_many(&direct, 1).await;
        load.until_done().await;
        assert!(health().last_delivery.unwrap() >= before);

        relay.refuse(true);
        relay.cut();
        until("a loss", async || !health().subscribed).await;
        assert!(health().trouble.is_some());
        relay.refuse(false);

        until("a subscription", async || health().subscribed).await;
        assert_eq!((health().resubscribed, health().trouble), (1, None));
    })
    .await;
}
