//! The ladder, down which jobs of quorum queues wait.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use queuey_rabbitmq::{Backend, Delivery, QueueKind, RabbitMqBackend};

use crate::{
    options,
    quorum::declared,
    relay::Relay,
    support::{Broker, jobs::*, pause, until, version, within},
};

const UNROUTABLE: &str = "queuey.ladder.unroutable";

pub async fn random_delays_are_never_early_and_all_come_back(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let mut seed = u64::from(std::process::id());
    let delays: Vec<_> = (0..40)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Duration::from_millis(1000 + (seed >> 33) % 6001)
        })
        .collect();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    let mut sent = vec![];
    for (number, delay) in (0..).zip(&delays) {
        sent.push(Instant::now());
        // Of either level that brokers before 4.3 have.
        let job = envelope(&queue, number).deferred((number % 2 * 10) as u8);
        backend.defer(&job, *delay).await.unwrap();
    }
    let stored = sent[0].elapsed();

    let (mut late, mut seen) = (vec![], HashSet::new());
    for _ in 0..delays.len() {
        let delivery = next(&mut deliveries).await;
        let number = number(&delivery) as usize;
        let (waited, delay) = (sent[number].elapsed(), delays[number]);
        delivery.ack().await.unwrap();
        assert!(waited >= delay, "{number} is back after {waited:?}");
        assert!(seen.insert(number), "{number} came twice");
        let whole = Duration::from_secs(delay.as_millis().div_ceil(1000) as u64);
        late.push(waited.saturating_sub(whole));
    }
    late.sort_unstable();
    let (median, most) = (late[late.len() / 2], late[late.len() - 1]);
    println!("stored in {stored:?}; late by {median:?} (median), {most:?} (most)");
}

pub async fn jobs_of_a_deleted_queue_end_where_they_are_found(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let gone = broker.queue().kind(QueueKind::Quorum);
    backend.declare(std::slice::from_ref(&gone)).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let mut lost = HashSet::new();

    // More than the broker's dead-lettering has in flight, 32.
    for number in 0..50 {
        let job = envelope(&gone, number);
        backend.defer(&job, 1000 * MS).await.unwrap();
        lost.insert(job.job_id);
        let job = envelope(&queue, number);
        backend.defer(&job, 1000 * MS).await.unwrap();
    }
    broker.delete(&gone.name).await;
    // Some may have come back before.
    let mut numbers = ack_numbers(&mut deliveries, 50).await;

    numbers.sort_unstable();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    within("the jobs without a queue", async {
        while !lost.is_empty() {
            match broker.take(UNROUTABLE).await {
                Some(message) => {
                    lost.remove(&message.envelope().job_id);
                }
                None => pause(10 * MS).await,
            }
        }
    })
    .await;
}

pub async fn a_queue_of_wildcards_gets_its_jobs_and_no_others(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let mut wild = queue.clone();
    wild.name = format!("{}.#", queue.name);
    broker.remove_later(&wild.name);
    broker.remove_later(&backend.dead_queue_name(&wild.name));
    backend.declare(std::slice::from_ref(&wild)).await.unwrap();

    for (number, queue) in [(0, &queue), (1, &wild)] {
        let job = envelope(queue, number);
        backend.defer(&job, 1000 * MS).await.unwrap();
    }

    for (number, queue) in [(0, &queue), (1, &wild)] {
        let mut deliveries = backend.consume(queue).await.unwrap();
        assert_eq!(ack_numbers(&mut deliveries, 1).await, [number]);
        nothing(&mut deliveries).await;
    }
}

pub async fn a_job_is_not_held_up_by_one_ahead_that_is_due_later(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let mut deliveries = backend.consume(&queue).await.unwrap();

    // Both wait on the level of four seconds.
    let sooner = envelope(&queue, 0);
    backend.defer(&sooner, 4000 * MS).await.unwrap();
    pause(2500 * MS).await;
    let ahead = envelope(&queue, 1).deferred(10);
    backend.defer(&ahead, 4000 * MS).await.unwrap();

    assert_eq!(ack_numbers(&mut deliveries, 2).await, [0, 1]);
}

pub async fn deferrals_come_back_ahead_of_the_backlog(broker: Broker) {
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    for number in 0..6 {
        let job = envelope(&queue, number);
        backend.publish(&job, None).await.unwrap();
    }
    for (number, priority) in [(6, 7), (7, 10), (8, 10)] {
        let job = envelope(&queue, number).deferred(priority);
        backend.defer(&job, 1000 * MS).await.unwrap();
    }
    until("all jobs", async || {
        broker.ready(&queue.name).await == Some(9)
    })
    .await;

    let mut deliveries = backend.consume(&queue).await.unwrap();
    let numbers = ack_numbers(&mut deliveries, 9).await;

    if version() >= Some((4, 3)) {
        assert_eq!(numbers, [7, 8, 6, 0, 1, 2, 3, 4, 5]);
    } else {
        // Two levels, taken from by turns: two of the upper one, one of the lower.
        let last = numbers.iter().rposition(|number| *number >= 6).unwrap();
        assert!(last < 5, "{numbers:?}");
    }
}

pub async fn it_may_be_declared_by_many_at_once(broker: Broker) {
    let Some((_, queue)) = declared(&broker, options(MS)).await else {
        return;
    };

    let declared = join_all((0..4).map(|_| async {
        let backend = broker.backend_with(options(MS)).await;
        for _ in 0..2 {
            backend.declare(std::slice::from_ref(&queue)).await.unwrap();
        }
        backend
    }))
    .await;

    let job = envelope(&queue, 1);
    declared[3].defer(&job, 1000 * MS).await.unwrap();
    let mut deliveries = declared[0].consume(&queue).await.unwrap();
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
}

pub async fn a_level_that_was_deleted_is_made_again(broker: Broker) {
    let broker = broker.quorum_vhost().await;
    let Some((backend, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let mut deliveries = backend.consume(&queue).await.unwrap();

    for number in 0..2 {
        broker.delete("queuey.ladder.0").await;
        let job = envelope(&queue, number);
        backend.defer(&job, 1000 * MS).await.unwrap();

        assert_eq!(ack_numbers(&mut deliveries, 1).await, [number]);
    }
}

pub async fn its_making_is_repeated_when_it_is_cut_off(broker: Broker) {
    let broker = broker.quorum_vhost().await;
    let Some((_, queue)) = declared(&broker, options(MS)).await else {
        return;
    };
    let relay = Relay::to(&broker.url);
    let options = options(MS).runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&relay.url, options);
    let backend = backend.await.unwrap();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    broker.delete("queuey.ladder.0").await;
    relay.cut_at_declare("queuey.ladder.0");
    let job = envelope(&queue, 1);
    backend.defer(&job, 1000 * MS).await.unwrap();

    assert!(relay.declares("queuey.ladder.0") > 2, "nothing was cut off");
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
}
