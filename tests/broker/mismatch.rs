//! Queues that exist with other arguments.

use futures_util::future::join_all;
use queuey_rabbitmq::{
    Backend, Chain, Delivery, Error, QueueConfig, RabbitMqBackend, Result, lapin::types::AMQPValue,
};

use crate::{
    options,
    support::{Broker, jobs::*},
};

/// Someone else's queue where ours would be: its jobs wait another time.
async fn foreign_hold(broker: &Broker, hold: &str) {
    broker.remove_later(hold);
    let arguments = [
        ("x-queue-type", AMQPValue::LongString("classic".into())),
        ("x-message-ttl", AMQPValue::LongLongInt(77_777)),
    ];
    broker.declare(hold, &arguments).await;
}

fn is_refused<T>(answer: &Result<T>, hold: &str) -> bool {
    matches!(answer, Err(Error::Precondition { queue, .. }) if queue == hold)
}

async fn declared(broker: &Broker, backend: &RabbitMqBackend) -> QueueConfig {
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    queue
}

pub async fn an_error_names_queue_argument_and_both_values(broker: Broker) {
    let backend = broker.backend().await;
    let queue = declared(&broker, &backend).await;

    let refused = backend.declare(&[queue.clone().max_priority(5)]).await;

    let error = refused.unwrap_err();
    let words = Chain(&error).to_string();
    for part in [&*queue.name, "'x-max-priority'", "'5'", "'10'"] {
        assert!(words.contains(part), "{part} in {words}");
    }
}

pub async fn refused_declares_disturb_nothing_else(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = declared(&broker, &backend).await;
    let other = queue.clone().max_priority(5);
    let mut deliveries = backend.consume(&queue).await.unwrap();

    let refused = join_all((0..20).map(|_| backend.declare(std::slice::from_ref(&other))));
    let (published, held) = (
        join_all((0..20).map(|number| {
            let job = envelope(&queue, number);
            let backend = &backend;
            async move { backend.publish(&job, None).await }
        })),
        join_all((20..40).map(|number| {
            let job = envelope(&queue, number);
            let backend = &backend;
            async move { backend.defer(&job, 1000 * MS).await }
        })),
    );
    let (refused, (published, held)) =
        futures_lite::future::zip(refused, futures_lite::future::zip(published, held)).await;

    assert!(refused.iter().all(|answer| is_refused(answer, &queue.name)));
    assert!(published.iter().chain(&held).all(Result::is_ok));
    let mut numbers = ack_numbers(&mut deliveries, 40).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>());
}

pub async fn a_foreign_hold_refuses_every_way_of_waiting(broker: Broker) {
    let backend = broker.backend().await;
    let queue = declared(&broker, &backend).await;
    let hold = backend.hold_queue_name(&queue.name, 1000);
    foreign_hold(&broker, &hold).await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;
    let again = delivery.envelope().next_attempt();

    let retried = delivery.retry(&again, MS).await.unwrap_err();
    let delivery = retried.delivery.expect("nothing was acked");
    let deferred = delivery.defer(&again, MS).await.unwrap_err();
    let delayed = backend.publish(&again, Some(MS)).await;

    assert!(is_refused::<()>(&Err(retried.error), &hold));
    assert!(is_refused::<()>(&Err(deferred.error), &hold));
    assert!(is_refused(&delayed, &hold));
    assert_eq!(broker.ready(&hold).await, Some(0));
    backend.publish(&envelope(&queue, 2), None).await.unwrap();
    drop(deferred.delivery.expect("nothing was acked"));
    let mut numbers = ack_numbers(&mut deliveries, 2).await;
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
}

pub async fn a_foreign_hold_disturbs_no_hold_declared_beside_it(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = declared(&broker, &backend).await;
    // So long that a busy machine makes none of them longer.
    let holds: Vec<_> = (20_000..20_040)
        .map(|ttl| backend.hold_queue_name(&queue.name, ttl))
        .collect();
    for hold in &holds {
        broker.remove_later(hold);
    }
    foreign_hold(&broker, &holds[20]).await;

    for _ in 0..5 {
        let held = join_all((0..40).map(|number| {
            let job = envelope(&queue, number);
            let backend = &backend;
            async move { backend.defer(&job, (20_000 + number as u32) * MS).await }
        }))
        .await;

        for (place, held) in held.iter().enumerate() {
            match place {
                20 => assert!(is_refused(held, &holds[20]), "{held:?}"),
                _ => assert!(held.is_ok(), "{held:?}"),
            }
        }
    }
    for (place, hold) in holds.iter().enumerate() {
        let stored = if place == 20 { 0 } else { 5 };
        assert_eq!(broker.ready(hold).await, Some(stored), "{hold}");
    }
}

pub async fn a_hold_replaced_by_a_foreign_one_loses_no_job_of_another(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = declared(&broker, &backend).await;
    let holds: Vec<_> = (20_000..20_020)
        .map(|ttl| backend.hold_queue_name(&queue.name, ttl))
        .collect();
    for hold in &holds {
        broker.remove_later(hold);
    }
    let hold_all = async || {
        join_all((0..20).map(|number| {
            let job = envelope(&queue, number);
            let backend = &backend;
            async move { backend.defer(&job, (20_000 + number as u32) * MS).await }
        }))
        .await
    };
    assert!(hold_all().await.iter().all(Result::is_ok));
    broker.delete(&holds[5]).await;
    foreign_hold(&broker, &holds[5]).await;

    for _ in 0..5 {
        for (place, held) in hold_all().await.iter().enumerate() {
            match place {
                5 => assert!(is_refused(held, &holds[5]), "{held:?}"),
                _ => assert!(held.is_ok(), "{held:?}"),
            }
        }
    }
    for (place, hold) in holds.iter().enumerate() {
        let stored = broker.ready(hold).await.unwrap();
        // Those in flight when the broker refused may be stored twice.
        let expected = if place == 5 { 0..=0 } else { 6..=7 };
        assert!(expected.contains(&stored), "{stored} in {hold}");
    }
}

pub async fn many_who_ask_for_a_foreign_hold_are_each_refused(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = declared(&broker, &backend).await;
    let foreign = backend.hold_queue_name(&queue.name, 20_000);
    foreign_hold(&broker, &foreign).await;
    let ours = backend.hold_queue_name(&queue.name, 30_000);
    broker.remove_later(&ours);

    let held = join_all((0..60).map(|number| {
        let job = envelope(&queue, number);
        let delay = if number % 2 == 0 { 20_000 } else { 30_000 };
        let backend = &backend;
        async move { backend.defer(&job, delay * MS).await }
    }))
    .await;

    for (number, held) in held.iter().enumerate() {
        match number % 2 {
            0 => assert!(is_refused(held, &foreign), "{held:?}"),
            _ => assert!(held.is_ok(), "{held:?}"),
        }
    }
    assert_eq!(broker.ready(&ours).await, Some(30));
}
