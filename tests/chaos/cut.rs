//! The link breaks.

use queuey_rabbitmq::{Backend, RabbitMqOptions};

use crate::{
    load::{CALLERS, Load, beside},
    relay::Relay,
    support::{Broker, is_long, jobs::*, pause, until},
    through,
};

pub async fn jobs_all_run_while_the_link_breaks_five_times_a_second(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let backend = through(&broker, &relay, RabbitMqOptions::new()).await;
    let load = Load::on(&backend, broker.queue()).await;
    let cuts = if is_long() { 100 } else { 25 };

    let worker = load.worker(&backend, 5 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        let cutting = async {
            for _ in 0..cuts {
                pause(200 * MS).await;
                relay.cut();
            }
        };
        load.enqueue_during(&backend, 5 * MS, cutting).await;
        load.until_done().await;
        // And it goes on.
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
    })
    .await;

    let repeats = load.account(&broker, counts).await;
    assert!(load.refusals().is_empty(), "{:?}", load.refusals());
    // What was in hand, and what was published and not confirmed.
    let in_flight = usize::from(load.queue.prefetch) + CALLERS;
    assert!(repeats <= cuts * in_flight, "{repeats} repeats");
}

pub async fn a_thousand_jobs_run_a_thousand_times_however_often_the_link_breaks(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let (direct, cut) = (
        broker.backend().await,
        through(&broker, &relay, RabbitMqOptions::new()).await,
    );
    let load = Load::on(&direct, broker.queue()).await;
    cut.declare(std::slice::from_ref(&load.queue))
        .await
        .unwrap();
    // Stored once each: this link does not break.
    load.enqueue_many(&direct, 1000).await;

    let worker = load.worker(&cut, 50 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        let breaking = async {
            loop {
                pause(150 * MS).await;
                relay.cut();
            }
        };
        futures_lite::future::or(load.until_done(), breaking).await;
        // What came back since is acked without a run.
        let left = ["list_queues", "name", "messages"];
        let none_left = format!("{}\t0", load.queue.name);
        until("all are acked", async || {
            broker.ctl_beside(&left).await.contains(&none_left)
        })
        .await;
    })
    .await;

    assert_eq!(load.account(&broker, counts).await, 0);
    assert_eq!(load.runs(), 1000);
}

pub async fn what_has_not_started_is_left_to_whoever_gets_it_next(broker: Broker) {
    const JOBS: usize = 16;
    let relay = Relay::to(&broker.url);
    let (direct, cut) = (
        broker.backend().await,
        through(&broker, &relay, RabbitMqOptions::new()).await,
    );
    let queue = broker.queue().prefetch(JOBS as u16);
    let load = Load::on(&direct, queue).await;
    load.enqueue_many(&direct, JOBS).await;

    let first = load.worker(&cut, 200 * MS).concurrency(1).build().await;
    let other = load.worker(&direct, 200 * MS).build().await.unwrap();
    let handle = other.handle();
    let counts = beside(first.unwrap(), async {
        load.until_runs(1).await;
        let all = async {
            relay.cut();
            load.until_done().await;
            load.until_empty(&broker).await;
            handle.shutdown();
        };
        futures_lite::future::zip(all, other.run()).await.1.unwrap();
    })
    .await;

    // The one that ran then.
    let repeats = load.account(&broker, counts).await;
    assert!(repeats <= 1, "{repeats} repeats");
}

pub async fn what_is_enqueued_while_nobody_listens_is_stored_once_somebody_does(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let backend = through(&broker, &relay, RabbitMqOptions::new()).await;
    let load = Load::on(&backend, broker.queue()).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
        relay.refuse(true);
        relay.cut();
        let again = async {
            pause(2000 * MS).await;
            assert_eq!(load.stored(), 20);
            relay.refuse(false);
        };
        futures_lite::future::zip(load.enqueue_many(&backend, 20), again).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

pub async fn a_worker_that_starts_while_the_link_breaks_works(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let backend = through(&broker, &relay, RabbitMqOptions::new()).await;
    let load = Load::on(&backend, broker.queue()).await;
    // To subscribe takes three questions, 100 ms each.
    relay.delay(50 * MS, 50 * MS);

    for cut in [None, Some(50 * MS), Some(150 * MS), Some(250 * MS)] {
        let worker = load.worker(&backend, MS).build().await.unwrap();
        let counts = beside(worker, async {
            if let Some(moment) = cut {
                pause(moment).await;
                relay.cut();
            }
            load.enqueue(&backend).await.unwrap();
            load.until_done().await;
        })
        .await;

        load.account(&broker, counts).await;
    }
}

/// The prefetch of each consumer of `queue`.
pub async fn prefetches(broker: &Broker, queue: &str) -> Vec<String> {
    let listed = broker.ctl_beside(&["list_consumers", "queue_name", "prefetch_count"]);
    let listed = listed.await;
    let of_queue = listed
        .lines()
        .filter_map(|line| line.strip_prefix(queue)?.strip_prefix('\t'));
    of_queue.map(str::to_owned).collect()
}

/// How many channels each connection of this name has.
async fn channels(broker: &Broker, name: &str) -> Vec<String> {
    let listed = broker.ctl_beside(&["list_connections", "channels", "client_properties"]);
    let listed = listed.await;
    let named = listed.lines().filter(|line| line.contains(name));
    let mut counts: Vec<_> = named
        .map(|line| line.split('\t').next().unwrap().to_owned())
        .collect();
    counts.sort();
    counts
}

pub async fn the_prefetch_is_as_before_and_nothing_piles_up_over_twenty_cuts(broker: Broker) {
    let name = broker.name();
    let relay = Relay::to(&broker.url);
    let options = RabbitMqOptions::new().connection_name(&*name);
    let backend = through(&broker, &relay, options).await;
    let load = Load::on(&backend, broker.queue()).await;
    let prefetch = load.queue.prefetch.to_string();
    let often = if is_long() { 1 } else { 10 };

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
        let before = channels(&broker, &name).await;
        assert_eq!(before.len(), 2, "{before:?}");
        for cut in 1..=20 {
            relay.cut();
            load.enqueue(&backend).await.unwrap();
            load.until_done().await;
            if cut % often == 0 {
                until("the prefetch of before", async || {
                    prefetches(&broker, &load.queue.name).await == [prefetch.as_str()]
                })
                .await;
            }
        }
        until("the connections and channels of before", async || {
            channels(&broker, &name).await == before
        })
        .await;
    })
    .await;

    load.account(&broker, counts).await;
}
