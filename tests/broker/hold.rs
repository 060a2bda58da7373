//! Waiting: hold queues, and the lease the broker gives them.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use futures_lite::StreamExt;
use futures_util::future::join_all;
use queuey_rabbitmq::{Backend, Delivery, QueueConfig, RabbitMqBackend, RabbitMqOptions, Uuid};

use crate::{
    options,
    relay::Relay,
    support::{Broker, jobs::*, pause, until, within},
};

/// A backend that reaches the broker through `relay`, with hold queues of `step`.
async fn behind(broker: &Broker, relay: &Relay, step: Duration) -> (RabbitMqBackend, QueueConfig) {
    let options = options(step).runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&relay.url, options)
        .await
        .unwrap();
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

async fn declared(broker: &Broker, options: RabbitMqOptions) -> (RabbitMqBackend, QueueConfig) {
    let backend = broker.backend_with(options).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

/// Waits until `hold` is gone. To ask renews its lease, so we ask less often than it lasts.
async fn until_gone(broker: &Broker, hold: &str, lease: Duration) {
    within("the end of the hold queue", async {
        while broker.ready(hold).await.is_some() {
            pause(lease + 50 * MS).await;
        }
    })
    .await;
}

pub async fn a_delay_rounds_up_to_a_whole_second(broker: Broker) {
    let (backend, queue) = declared(&broker, RabbitMqOptions::new()).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let start = Instant::now();

    let job = envelope(&queue, 1);
    backend.defer(&job, 1200 * MS).await.unwrap();

    let hold = backend.hold_queue_name(&queue.name, 2000);
    assert_eq!(broker.ready(&hold).await, Some(1));
    ack_numbers(&mut deliveries, 1).await;
    assert!(start.elapsed() >= 1200 * MS);
}

pub async fn a_hold_queue_goes_by_itself_and_is_made_again(broker: Broker) {
    let (backend, queue) = declared(&broker, options(1000 * MS)).await;
    let hold = backend.hold_queue_name(&queue.name, 1000);
    let mut deliveries = backend.consume(&queue).await.unwrap();

    for number in 0..2 {
        let job = envelope(&queue, number);
        backend.defer(&job, 1000 * MS).await.unwrap();

        assert_eq!(ack_numbers(&mut deliveries, 1).await, [number]);
        until_gone(&broker, &hold, 2000 * MS).await;
    }
}

pub async fn a_hold_is_declared_before_every_publish_into_it(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let (backend, queue) = behind(&broker, &relay, 20_000 * MS).await;
    let hold = backend.hold_queue_name(&queue.name, 20_000);
    broker.remove_later(&hold);

    for number in 0..5 {
        let job = envelope(&queue, number);
        backend.defer(&job, 20_000 * MS).await.unwrap();
    }

    assert_eq!(relay.declares(&hold), 5);
    assert_eq!(broker.ready(&hold).await, Some(5));
}

pub async fn holds_asked_for_at_once_share_declares(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let (backend, queue) = behind(&broker, &relay, 20_000 * MS).await;
    let hold = backend.hold_queue_name(&queue.name, 20_000);
    broker.remove_later(&hold);
    relay.delay(20 * MS, 20 * MS);

    let held = join_all((0..200).map(|number| {
        let job = envelope(&queue, number);
        let backend = &backend;
        async move { backend.defer(&job, 20_000 * MS).await }
    }))
    .await;

    assert!(held.iter().all(Result::is_ok), "{held:?}");
    let declares = relay.declares(&hold);
    assert!((1..=10).contains(&declares), "{declares} declares");
    assert_eq!(broker.ready(&hold).await, Some(200));
}

pub async fn a_close_waits_for_a_hold_that_is_not_confirmed_yet(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let (backend, queue) = behind(&broker, &relay, 20_000 * MS).await;
    let hold = backend.hold_queue_name(&queue.name, 20_000);
    broker.remove_later(&hold);
    let first = envelope(&queue, 1);
    backend.defer(&first, 20_000 * MS).await.unwrap();
    relay.delay_next_publish(500 * MS);

    let second = envelope(&queue, 2);
    let held = backend.defer(&second, 20_000 * MS);
    let closed = async {
        // The publish follows its declare at once.
        until("the second declare", async || relay.declares(&hold) == 2).await;
        backend.close().await
    };
    let (held, closed) = within("the end", futures_lite::future::zip(held, closed)).await;

    held.unwrap();
    closed.unwrap();
    assert_eq!(broker.ready(&hold).await, Some(2));
}

pub async fn no_job_is_lost_or_early_on_a_slow_link(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let (backend, queue) = behind(&broker, &relay, 100 * MS).await;
    let near = broker.backend().await;
    let mut deliveries = near.consume(&queue).await.unwrap();
    relay.delay(60 * MS, 200 * MS);

    let mut asked = HashMap::<Uuid, Instant>::new();
    let mut arrived = HashSet::new();
    for batch in 0..2 {
        let jobs: Vec<_> = (0..10).map(|n| envelope(&queue, 10 * batch + n)).collect();
        asked.extend(jobs.iter().map(|job| (job.job_id, Instant::now())));
        let held = join_all(jobs.iter().map(|job| backend.defer(job, 100 * MS)));
        let arriving = async {
            while jobs.iter().any(|job| !arrived.contains(&job.job_id)) {
                let delivery = deliveries.next().await.unwrap().unwrap();
                let id = delivery.envelope().job_id;
                assert!(asked[&id].elapsed() >= 100 * MS);
                arrived.insert(id);
                delivery.ack().await.unwrap();
            }
        };
        let (held, ()) = within(
            "every job held and back",
            futures_lite::future::zip(held, arriving),
        )
        .await;
        assert!(held.iter().all(Result::is_ok), "{held:?}");
    }

    assert_eq!(arrived.len(), 20);
}

/// Defers one job for 100 ms while its publish is `late`; answers how often it arrives.
async fn arrivals_of_a_late_publish(broker: &Broker, late: Duration) -> usize {
    let relay = Relay::to(&broker.url);
    let (backend, queue) = behind(broker, &relay, 100 * MS).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    relay.delay_next_publish(late);
    let start = Instant::now();

    let job = envelope(&queue, 1);
    within("a hold", backend.defer(&job, 100 * MS))
        .await
        .unwrap();

    // The job was stored again, in a hold that outlasts the link.
    let delivery = next(&mut deliveries).await;
    assert!(start.elapsed() >= 100 * MS);
    delivery.ack().await.unwrap();
    let mut arrivals = 1;
    let silence = async {
        pause(4 * late).await;
        None
    };
    let again = async { Some(next(&mut deliveries).await) };
    if let Some(delivery) = futures_lite::future::or(again, silence).await {
        delivery.ack().await.unwrap();
        arrivals += 1;
    }
    assert_eq!(
        relay.declares(&backend.hold_queue_name(&queue.name, 100)),
        1
    );
    arrivals
}

pub async fn a_hold_confirmed_too_late_is_stored_again(broker: Broker) {
    // In time for the hold queue, which goes at 200 ms, but too late for a job of 100 ms.
    let arrivals = arrivals_of_a_late_publish(&broker, 150 * MS).await;

    assert!((1..=2).contains(&arrivals), "{arrivals}");
}

pub async fn a_publish_that_found_its_hold_gone_is_repeated(broker: Broker) {
    let arrivals = arrivals_of_a_late_publish(&broker, 600 * MS).await;

    assert_eq!(arrivals, 1);
}

pub async fn a_queue_declared_again_gets_later_jobs(broker: Broker) {
    let (backend, queue) = declared(&broker, options(1000 * MS)).await;
    let job = envelope(&queue, 1);
    backend.defer(&job, 1000 * MS).await.unwrap();
    broker.delete(&queue.name).await;
    let hold = backend.hold_queue_name(&queue.name, 1000);
    until_gone(&broker, &hold, 2000 * MS).await;

    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let job = envelope(&queue, 2);
    backend.defer(&job, 1000 * MS).await.unwrap();

    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [2]);
}

pub async fn a_waiting_job_is_not_unacknowledged(broker: Broker) {
    let (backend, queue) = declared(&broker, options(60_000 * MS)).await;
    let hold = backend.hold_queue_name(&queue.name, 60_000);
    broker.remove_later(&hold);
    let mut deliveries = backend.consume(&queue).await.unwrap();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let delivery = next(&mut deliveries).await;
    let again = delivery.envelope().next_attempt();

    delivery.retry(&again, 60_000 * MS).await.unwrap();
    let job = envelope(&queue, 2);
    backend.publish(&job, Some(60_000 * MS)).await.unwrap();

    // The broker learns of the ack a little later than we send it.
    until("no job unacknowledged", async || {
        let unacknowledged = ["messages_unacknowledged"];
        broker.listed(&queue.name, &unacknowledged).unwrap() == ["0"]
    })
    .await;
    let counts = ["messages_ready", "messages_unacknowledged"];
    assert_eq!(broker.listed(&hold, &counts).unwrap(), ["2", "0"]);
    assert_eq!(broker.listed(&queue.name, &counts).unwrap(), ["0", "0"]);
}
