//! Whose return is it? Every publish gets its own verdict, however many are in flight.

use fastrand::Rng;
use futures_lite::future;
use futures_util::future::join_all;
use queuey_rabbitmq::{Backend, Envelope, Error, QueueConfig, RabbitMqBackend, Result};

use crate::support::{Broker, jobs::*, within};

/// As many rounds as it took to see lapin's own verdicts go wrong; fewer unless asked for.
fn rounds(long: usize) -> usize {
    match std::env::var_os("QUEUEY_LONG") {
        Some(_) => long,
        None => 300,
    }
}

/// A queue that exists and one that does not.
async fn queues(broker: &Broker, backend: &RabbitMqBackend) -> (QueueConfig, QueueConfig) {
    let (good, missing) = (broker.queue(), broker.queue());
    backend.declare(std::slice::from_ref(&good)).await.unwrap();
    (good, missing)
}

async fn publish_all(backend: &RabbitMqBackend, jobs: &[Envelope]) -> Vec<Result<()>> {
    let published = join_all(jobs.iter().map(|job| backend.publish(job, None)));
    within("every verdict", published).await
}

fn assert_verdict(verdict: &Result<()>, is_missing: bool, round: usize, place: usize) {
    let is_right = match verdict {
        Ok(()) => !is_missing,
        Err(Error::Unroutable { .. }) => is_missing,
        Err(_) => false,
    };
    assert!(is_right, "round {round}, number {place}: {verdict:?}");
}

pub async fn only_the_sixth_of_ten_fails_when_its_queue_is_missing(broker: Broker) {
    let backend = broker.backend().await;
    let (good, missing) = queues(&broker, &backend).await;
    let rounds = rounds(3000);

    for round in 0..rounds {
        let jobs: Vec<_> = (1..=10)
            .map(|place| envelope(if place == 6 { &missing } else { &good }, place))
            .collect();

        let verdicts = publish_all(&backend, &jobs).await;

        for (place, verdict) in (1..).zip(&verdicts) {
            assert_verdict(verdict, place == 6, round, place);
        }
    }
    let stored = broker.ready(&good.name).await.unwrap();
    assert_eq!(stored as usize, 9 * rounds);
}

pub async fn a_few_of_many_fail_when_their_queues_are_missing(broker: Broker) {
    let backend = broker.backend().await;
    let (good, missing) = queues(&broker, &backend).await;
    let mut rng = Rng::with_seed(20);
    let mut published = 0;

    for round in 0..300 {
        let lost: Vec<usize> = (0..rng.usize(1..=3)).map(|_| rng.usize(0..256)).collect();
        let jobs: Vec<_> = (0..256)
            .map(|place| {
                let queue = if lost.contains(&place) {
                    &missing
                } else {
                    &good
                };
                envelope(queue, place as u64)
            })
            .collect();

        let verdicts = publish_all(&backend, &jobs).await;

        for (place, verdict) in verdicts.iter().enumerate() {
            assert_verdict(verdict, lost.contains(&place), round, place);
        }
        published += verdicts.iter().filter(|verdict| verdict.is_ok()).count();
    }
    let stored = broker.ready(&good.name).await.unwrap();
    assert_eq!(stored as usize, published);
}

pub async fn threads_that_publish_at_once_get_their_own_verdicts(broker: Broker) {
    const THREADS: usize = 4;
    let backend = broker.backend().await;
    let (good, missing) = queues(&broker, &backend).await;
    let published = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (backend, good, missing) = (&backend, &good, &missing);
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(seed as u64);
                    let mut published = 0;
                    for round in 0..100 {
                        let lost = rng.usize(0..16);
                        let jobs: Vec<_> = (0..16)
                            .map(|place| envelope(if place == lost { missing } else { good }, 1))
                            .collect();
                        let verdicts = future::block_on(publish_all(backend, &jobs));
                        for (place, verdict) in verdicts.iter().enumerate() {
                            assert_verdict(verdict, place == lost, round, place);
                        }
                        published += 15;
                    }
                    published
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.sum::<u32>()
    });
    let stored = broker.ready(&good.name).await.unwrap();
    assert_eq!(stored, published);
}

pub async fn a_publish_given_up_half_way_disturbs_no_verdict(broker: Broker) {
    let backend = broker.backend().await;
    let (good, missing) = queues(&broker, &backend).await;
    let mut rng = Rng::with_seed(21);
    let (mut published, mut started, mut given_up) = (0, 0, 0);

    for round in 0..200 {
        for _ in 0..rng.usize(1..4) {
            let queue = if rng.bool() { &missing } else { &good };
            let job = envelope(queue, 0);
            let first_poll = future::poll_once(backend.publish(&job, None)).await;
            started += 1;
            given_up += u32::from(first_poll.is_none());
        }
        let lost = rng.usize(0..10);
        let jobs: Vec<_> = (0..10)
            .map(|place| envelope(if place == lost { &missing } else { &good }, place as u64))
            .collect();

        let verdicts = publish_all(&backend, &jobs).await;

        for (place, verdict) in verdicts.iter().enumerate() {
            assert_verdict(verdict, place == lost, round, place);
        }
        published += 9;
    }
    assert!(given_up > 200, "only {given_up} were given up");
    let stored = broker.ready(&good.name).await.unwrap();
    assert!((published..=published + started).contains(&stored));
}

pub async fn a_hold_given_up_half_way_disturbs_no_other(broker: Broker) {
    let backend = broker.backend_with(crate::options(1000 * MS)).await;
    let (good, _) = queues(&broker, &backend).await;

    for number in 0..50 {
        let (given_up, kept) = (envelope(&good, 1000), envelope(&good, number));
        future::poll_once(backend.defer(&given_up, 1000 * MS)).await;
        within("a hold", backend.defer(&kept, 1000 * MS))
            .await
            .unwrap();
    }

    let mut deliveries = backend.consume(&good).await.unwrap();
    let mut missing: Vec<_> = (0..50).collect();
    while !missing.is_empty() {
        let number = ack_numbers(&mut deliveries, 1).await[0];
        missing.retain(|&other| other != number);
    }
}
