//! Streams: what they hold, and what becomes of it.

use std::time::Instant;

use futures_lite::StreamExt;
use queuey_rabbitmq::{
    Backend, Delivery, Error, QueueConfig, RabbitMqBackend, RabbitMqDeliveries, RabbitMqDelivery,
    RabbitMqOptions,
};

use crate::support::{Broker, jobs::*, until, within};

async fn declared(broker: &Broker, prefetch: u16) -> (RabbitMqBackend, QueueConfig) {
    let backend = broker.backend().await;
    let queue = broker.queue().prefetch(prefetch);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

async fn publish(backend: &RabbitMqBackend, queue: &QueueConfig, count: u64) {
    for number in 0..count {
        let job = envelope(queue, number);
        backend.publish(&job, None).await.unwrap();
    }
}

async fn until_ready(broker: &Broker, queue: &QueueConfig, count: u32) {
    until(&format!("{count} jobs ready"), async || {
        broker.ready(&queue.name).await == Some(count)
    })
    .await;
}

pub async fn a_dropped_stream_gives_back_all_it_has_buffered(broker: Broker) {
    let (backend, queue) = declared(&broker, 10).await;
    publish(&backend, &queue, 12).await;
    let deliveries = backend.consume(&queue).await.unwrap();
    until_ready(&broker, &queue, 2).await;

    drop(deliveries);

    until_ready(&broker, &queue, 12).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let numbers = ack_numbers(&mut deliveries, 12).await;
    assert_eq!(numbers, (0..12).collect::<Vec<_>>());
}

pub async fn a_dropped_stream_does_not_wait_for_jobs_in_hand(broker: Broker) {
    let (backend, queue) = declared(&broker, 10).await;
    publish(&backend, &queue, 10).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let in_hand = next(&mut deliveries).await;
    until_ready(&broker, &queue, 0).await;

    drop(deliveries);

    until_ready(&broker, &queue, 9).await;
    in_hand.release().await.unwrap();
    until_ready(&broker, &queue, 10).await;
}

pub async fn dropping_one_subscription_does_not_disturb_another(broker: Broker) {
    let (backend, first) = declared(&broker, 5).await;
    let second = broker.queue().prefetch(5);
    backend
        .declare(std::slice::from_ref(&second))
        .await
        .unwrap();
    publish(&backend, &first, 5).await;
    publish(&backend, &second, 5).await;
    let mut dropped = backend.consume(&first).await.unwrap();
    let mut kept = backend.consume(&second).await.unwrap();
    let of_dropped = next(&mut dropped).await;
    let of_kept = next(&mut kept).await;

    drop(dropped);

    until_ready(&broker, &first, 4).await;
    of_kept.ack().await.unwrap();
    of_dropped.ack().await.unwrap();
    assert_eq!(ack_numbers(&mut kept, 4).await, [1, 2, 3, 4]);
    assert_eq!(broker.ready(&first.name).await, Some(4));
}

pub async fn what_one_subscription_gives_back_another_of_the_queue_gets(broker: Broker) {
    let (backend, queue) = declared(&broker, 10).await;
    publish(&backend, &queue, 10).await;
    let dropped = backend.consume(&queue).await.unwrap();
    until_ready(&broker, &queue, 0).await;
    let mut kept = backend.consume(&queue).await.unwrap();

    drop(dropped);

    let numbers = ack_numbers(&mut kept, 10).await;
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
}

enum Part {
    Backend(#[allow(dead_code, reason = "held")] RabbitMqBackend),
    Stream(#[allow(dead_code, reason = "held")] Box<RabbitMqDeliveries>),
    Delivery(#[allow(dead_code, reason = "held")] Box<RabbitMqDelivery>),
}

pub async fn parts_may_be_dropped_in_any_order(broker: Broker) {
    let queue = broker.queue();
    let watcher = broker.backend().await;
    watcher.declare(std::slice::from_ref(&queue)).await.unwrap();
    publish(&watcher, &queue, 3).await;

    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let backend = broker.backend().await;
        let mut deliveries = backend.consume(&queue).await.unwrap();
        let delivery = next(&mut deliveries).await;
        until_ready(&broker, &queue, 0).await;
        let mut parts = [
            Some(Part::Backend(backend)),
            Some(Part::Stream(Box::new(deliveries))),
            Some(Part::Delivery(Box::new(delivery))),
        ];

        for part in order {
            parts[part] = None;
        }

        until_ready(&broker, &queue, 3).await;
    }
}

pub async fn a_stream_and_a_delivery_outlive_the_backend_value(broker: Broker) {
    let (backend, queue) = declared(&broker, 1).await;
    publish(&backend, &queue, 2).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let first = next(&mut deliveries).await;

    drop(backend);

    let again = first.envelope().next_attempt();
    first.retry(&again, MS).await.unwrap();
    let mut numbers = ack_numbers(&mut deliveries, 2).await;
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1]);
}

pub async fn a_deleted_queue_ends_its_stream_when_nothing_is_to_come_back(broker: Broker) {
    let options = RabbitMqOptions::new().reconnect(None);
    let backend = broker.backend_with(options).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    broker.delete(&queue.name).await;

    let end = within("the end", deliveries.next()).await;
    assert!(
        matches!(&end, Some(Err(Error::ConsumerStopped(name))) if *name == queue.name),
        "{end:?}"
    );
    assert!(within("the end", deliveries.next()).await.is_none());
}

pub async fn a_deleted_queue_is_made_again_and_its_stream_goes_on(broker: Broker) {
    let (backend, queue) = declared(&broker, 10).await;
    let other = broker.queue();
    backend.declare(std::slice::from_ref(&other)).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let mut others = backend.consume(&other).await.unwrap();
    let first = async {
        let delivery = next(&mut deliveries).await;
        let found = number(&delivery);
        delivery.ack().await.unwrap();
        found
    };

    broker.delete(&queue.name).await;
    let job = envelope(&queue, 7);
    let (found, ()) = futures_lite::future::zip(
        first,
        until("the queue is there again", async || {
            backend.publish(&job, None).await.is_ok()
        }),
    )
    .await;

    assert_eq!(found, 7);
    publish(&backend, &other, 1).await;
    assert_eq!(ack_numbers(&mut others, 1).await, [0]);
}

pub async fn the_broker_knows_the_prefetch_of_each_queue(broker: Broker) {
    let (backend, few) = declared(&broker, 3).await;
    let many = broker.queue().prefetch(77);
    backend.declare(std::slice::from_ref(&many)).await.unwrap();
    let _streams = [
        backend.consume(&few).await.unwrap(),
        backend.consume(&many).await.unwrap(),
    ];

    let columns = [
        "queue_name",
        "consumer_tag",
        "ack_required",
        "prefetch_count",
    ];
    let listed = broker.ctl(&[&["list_consumers"], &columns[..]].concat());

    for (queue, prefetch) in [(few, 3), (many, 77)] {
        let line = listed.lines().find(|line| line.starts_with(&queue.name));
        let line = line.expect("one consumer");
        assert!(line.ends_with(&format!("\ttrue\t{prefetch}")), "{line}");
        assert!(
            line.contains(&format!("\tqueuey.{}.", queue.name)),
            "{line}"
        );
    }
}

pub async fn nothing_is_left_of_a_dropped_backend(broker: Broker) {
    let name = broker.name();
    let options = RabbitMqOptions::new().connection_name(&*name);
    let backend = broker.backend_with(options).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    publish(&backend, &queue, 2).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;
    assert_eq!(broker.connections(&name).len(), 2);

    drop((backend, deliveries, delivery));

    let start = Instant::now();
    until("both connections gone", async || {
        broker.connections(&name).is_empty()
    })
    .await;
    assert!(start.elapsed() < 20_000 * MS, "no heartbeat had to tell");
    until_ready(&broker, &queue, 2).await;
}
