//! The broker is not there.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_lite::future::zip;
use futures_util::future::join_all;
use queuey_rabbitmq::{
    Attempt, Backend, Backoff, BackoffPolicy, Chain, Error, RabbitMqBackend, RabbitMqOptions,
    Rebuilding, ReconnectPolicy,
};

use crate::{
    load::{Load, beside},
    node, quick,
    relay::Relay,
    support::{Broker, jobs::*, pause, until, within},
    through,
};

pub async fn publishes_end_in_time_and_workers_stop_as_asked(broker: Broker) {
    let limit = 1000 * MS;
    let backend = broker.backend_with(quick().publish_timeout(limit)).await;
    let load = Load::on(&backend, broker.queue()).await;
    let worker = load.worker(&backend, MS).build().await.unwrap();
    let second = load.worker(&backend, MS).build().await.unwrap();
    let stop = second.handle();

    let counts = beside(worker, async {
        load.enqueue_many(&backend, 10).await;
        load.until_done().await;
        let away = node::kill().await;
        let stopped = async {
            let mut answers = vec![];
            for _ in 0..2 {
                let start = Instant::now();
                let answer = within("an answer", load.enqueue(&backend)).await;
                let took = start.elapsed();
                assert!((limit..3 * limit).contains(&took), "{took:?}");
                answers.push(answer.unwrap_err());
            }
            // When the first was asked for, the loss may not have been noticed.
            let words = Chain(&answers[1]).to_string();
            assert!(matches!(answers[1], Error::Disconnected { .. }), "{words}");
            assert!(words.contains("refused"), "{words}");
            let start = Instant::now();
            stop.shutdown();
            start
        };
        let ended = async {
            second.run().await.unwrap();
            Instant::now()
        };
        let (asked, ended) = zip(stopped, within("the end", ended)).await;
        assert!(ended - asked < 5000 * MS, "{:?}", ended - asked);

        away.end().await;
        until("an enqueue", async || load.enqueue(&backend).await.is_ok()).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

pub async fn a_bounded_policy_gives_up_and_all_hear_of_it_at_once(broker: Broker) {
    let policy = BackoffPolicy::new().max_attempts(3);
    let policy = policy.backoff(Backoff::Fixed(100 * MS));
    let options = RabbitMqOptions::new().reconnect(Some(Arc::new(policy)));
    let backend = broker.backend_with(options).await;
    let load = Load::on(&backend, broker.queue()).await;
    load.enqueue_many(&backend, 10).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let handle = worker.handle();
    let killed = async {
        load.until_done().await;
        node::kill().await
    };
    let (end, away) = zip(within("the end", worker.run()), killed).await;
    let end = end.unwrap_err();
    assert!(matches!(end, Error::Disconnected { .. }), "{end:?}");
    within("the end of the attempts", load.enqueue(&backend))
        .await
        .unwrap_err();
    for _ in 0..2 {
        let start = Instant::now();
        let answer = load.enqueue(&backend).await;
        assert!(
            matches!(answer, Err(Error::Disconnected { .. })),
            "{answer:?}"
        );
        assert!(start.elapsed() < 200 * MS, "{:?}", start.elapsed());
    }
    away.end().await;
    load.account(&broker, handle.counts()).await;
}

/// So many attempts for each thing that is to come back.
#[derive(Debug)]
struct Attempts {
    connection: u32,
    consumer: u32,
}

impl ReconnectPolicy for Attempts {
    fn next_delay(&self, attempt: &Attempt<'_>) -> Option<Duration> {
        let most = match attempt.rebuilding {
            Rebuilding::Connection => self.connection,
            _ => self.consumer,
        };
        (attempt.failures < most).then_some(50 * MS)
    }
}

pub async fn a_lost_connection_is_no_failed_attempt_to_subscribe(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let policy = Attempts {
        connection: u32::MAX,
        consumer: 3,
    };
    let options = RabbitMqOptions::new().reconnect_with(policy);
    let backend = through(&broker, &relay, options.publish_timeout(200 * MS)).await;
    let load = Load::on(&backend, broker.queue()).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 10).await;
        load.until_done().await;
        relay.refuse(true);
        relay.cut();
        pause(2000 * MS).await;
        relay.refuse(false);
        until("an enqueue", async || load.enqueue(&backend).await.is_ok()).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

pub async fn a_worker_ends_when_its_connection_is_given_up(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let policy = Attempts {
        connection: 2,
        consumer: u32::MAX,
    };
    let options = RabbitMqOptions::new().reconnect_with(policy);
    let backend = through(&broker, &relay, options).await;
    let load = Load::on(&backend, broker.queue()).await;
    let worker = load.worker(&backend, MS).build().await.unwrap();

    let cut = async {
        load.enqueue(&backend).await.unwrap();
        load.until_done().await;
        relay.refuse(true);
        relay.cut();
    };
    let (end, ()) = zip(within("the end", worker.run()), cut).await;

    let end = end.unwrap_err();
    assert!(matches!(end, Error::Disconnected { .. }), "{end:?}");
}

async fn connect(broker: &Broker, options: RabbitMqOptions) -> Result<RabbitMqBackend, Error> {
    let options = options.runtime(broker.runtime.clone());
    RabbitMqBackend::with_options(&broker.url, options).await
}

pub async fn a_backend_told_to_wait_connects_once_the_broker_is_there(broker: Broker) {
    let away = node::kill().await;

    let start = Instant::now();
    let answer = connect(&broker, RabbitMqOptions::new()).await;
    assert!(matches!(answer, Err(Error::Broker { .. })), "{answer:?}");
    assert!(start.elapsed() < 2000 * MS, "{:?}", start.elapsed());

    let started = async {
        pause(Duration::from_secs(1)).await;
        away.end().await;
    };
    let waiting = connect(&broker, quick().wait_for_broker(true));
    let (backend, ()) = zip(within("a connection", waiting), started).await;
    let backend = backend.unwrap();

    let load = Load::on(&backend, broker.queue()).await;
    load.enqueue_many(&backend, 10).await;
    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, load.until_done()).await;
    load.account(&broker, counts).await;
}

/// What this process holds in memory.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = pages.split(' ').nth(1).unwrap();
    pages.parse::<usize>().unwrap() * 4096
}

/// Less than fifty bytes for each of 10,000 calls.
const SOME: usize = 500_000;

pub async fn calls_that_time_out_leave_nothing_behind(broker: Broker) {
    let options = RabbitMqOptions::new().publish_timeout(20 * MS);
    let backend = broker.backend_with(options).await;
    let load = Load::on(&backend, broker.queue()).await;
    let away = node::kill().await;
    let calls = async |batches: usize| {
        let job = envelope(&load.queue, 1);
        for _ in 0..batches {
            let publish = |delayed: bool| backend.publish(&job, delayed.then_some(MS));
            for answer in join_all((0..500).map(|it| publish(it % 2 == 0))).await {
                answer.unwrap_err();
            }
        }
    };
    // Now and then the allocator takes some megabytes; a leak would be there each time.
    let mut grown = vec![];
    while grown.len() < 20 && grown.last().is_none_or(|last| *last >= SOME) {
        let before = resident();
        calls(20).await;
        grown.push(resident().saturating_sub(before));
    }
    eprintln!("    {grown:?} bytes more after 10,000 calls each");
    away.end().await;

    assert!(grown.last() < Some(&SOME), "{grown:?}");
    until("an enqueue", async || load.enqueue(&backend).await.is_ok()).await;
}
