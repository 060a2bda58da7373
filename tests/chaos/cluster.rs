//! Nodes of a cluster are killed, one at a time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures_lite::future::zip;
use futures_util::future::join_all;
use queuey_rabbitmq::{Error, QueueKind, RabbitMqBackend, RetryPolicy};

use crate::{
    load::{CALLERS, Load, beside},
    nodes::Cluster,
    quick,
    support::{Broker, is_long, jobs::*, pause, until, version},
};

/// A level of the ladder, and how many of them the waits here pass at most.
const LEVEL: &str = "queuey.ladder.1";
const LEVELS: usize = 3;

/// What a level may hand on once more when its leader dies: what it has in flight.
const HOPS: usize = 32;

/// No jobs yet, and their queue on every node.
async fn replicated(cluster: &Cluster, backend: &RabbitMqBackend) -> Load {
    let queue = cluster.broker.queue().kind(QueueKind::Quorum);
    let load = Load::on(backend, queue).await;
    cluster.until_whole().await;
    load
}

async fn until_stored(load: &Load, more: usize) {
    let goal = load.stored() + more;
    until("jobs stored", async || load.stored() >= goal).await;
}

/// Has the broker give back soon what a consumer of a dead node had. Before 4.3 it does so by
/// itself, since then after a minute.
fn give_back_soon(cluster: &Cluster, load: &Load) {
    if version() < Some((4, 3)) {
        return;
    }
    let soon = r#"{"consumer-disconnected-timeout": 1000}"#;
    cluster.broker.policy(&load.queue.name, soon);
}

pub async fn jobs_enqueued_while_each_node_dies_in_turn_all_run(broker: Broker) {
    let cluster = Cluster::of(broker);
    let backend = cluster.backend(1, quick()).await;
    let load = replicated(&cluster, &backend).await;
    let rounds = if is_long() { 5 } else { 1 };
    let deaths: Vec<_> = (0..rounds).flat_map(|_| cluster.nodes()).collect();

    let worker = load.worker(&backend, 5 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        let killing = async {
            for &node in &deaths {
                until_stored(&load, 200).await;
                let away = cluster.kill(node).await;
                // The other two are enough.
                until_stored(&load, 200).await;
                away.end().await;
                cluster.until_whole().await;
            }
            until_stored(&load, 100).await;
        };
        load.enqueue_during(&backend, 5 * MS, killing).await;
        load.until_done().await;
        load.until_empty(&cluster.broker).await;
    })
    .await;

    let again = load.account(&cluster.broker, counts).await;
    assert!(load.refusals().is_empty(), "{:?}", load.refusals());
    // What is cut off before its confirm is published again.
    let cut_off = deaths.len() * CALLERS;
    assert!(again <= cut_off, "{again} again");
}

pub async fn jobs_that_wait_come_back_when_the_node_of_the_client_dies(broker: Broker) {
    let cluster = Cluster::of(broker);
    let backend = cluster.backend(2, quick()).await;
    let load = replicated(&cluster, &backend).await;

    waits_outlive(2, &cluster, &backend, &load).await;
}

pub async fn jobs_that_wait_come_back_when_the_leader_of_their_ladder_dies(broker: Broker) {
    let cluster = Cluster::of(broker);
    let load = replicated(&cluster, &cluster.backend(1, quick()).await).await;
    let leader = cluster.leader(LEVEL).await;
    let other = cluster.nodes().find(|&node| node != leader).unwrap();
    let backend = cluster.backend(other, quick()).await;

    waits_outlive(leader, &cluster, &backend, &load).await;
}

/// Jobs begin and end their waits all the time while `node` dies and is away.
async fn waits_outlive(node: usize, cluster: &Cluster, backend: &RabbitMqBackend, load: &Load) {
    let bursts: u64 = if is_long() { 400 } else { 60 };

    let worker = load.worker(backend, MS).build().await.unwrap();
    let mut held = vec![];
    let counts = beside(worker, async {
        let waiting = async {
            for burst in 0..bursts {
                let wait = Duration::from_millis(2000 + burst * 970 % 5000);
                let jobs = (0..CALLERS).map(|_| async {
                    let sent = Instant::now();
                    let number = load.enqueue_after(backend, wait).await.unwrap();
                    (number, sent, wait)
                });
                held.extend(join_all(jobs).await);
                pause(50 * MS).await;
            }
        };
        let killing = async {
            load.until_runs(1).await;
            cluster.kill(node).await
        };
        let ((), away) = zip(waiting, killing).await;
        load.until_done().await;
        away.end().await;
        cluster.until_whole().await;
        load.until_empty(&cluster.broker).await;
    })
    .await;

    let again = load.account(&cluster.broker, counts).await;
    let mut late = vec![];
    for (number, sent, wait) in held {
        let waited = load.runs_of(number, 1)[0] - sent;
        assert!(waited >= wait, "job {number} is back after {waited:?}");
        late.push(waited - wait);
    }
    late.sort_unstable();
    let (median, most) = (late[late.len() / 2], late[late.len() - 1]);
    eprintln!("    late by {median:?} (median), {most:?} (most)");
    assert!(again <= CALLERS + LEVELS * HOPS, "{again} again");
}

pub async fn jobs_given_up_around_the_death_of_a_node_are_all_dead_letters(broker: Broker) {
    let cluster = Cluster::of(broker);
    let backend = cluster.backend(3, quick()).await;
    let load = replicated(&cluster, &backend).await;
    let jobs = if is_long() { 1000 } else { 200 };
    let dead = format!("{}.dead", load.queue.name);
    give_back_soon(&cluster, &load);
    load.enqueue_many(&backend, jobs).await;

    let worker = load
        .worker_with(&backend, |_| async {
            pause(50 * MS).await;
            Err(std::io::Error::other("never").into())
        })
        .job_retry_override::<Number>(RetryPolicy::fixed(2, 1000 * MS))
        .build()
        .await
        .unwrap();
    let handle = worker.handle();
    let counts = beside(worker, async {
        until("dead letters", async || handle.counts().dead_lettered > 10).await;
        let away = cluster.kill(3).await;
        let all = Some(jobs as u32);
        until("every dead letter", async || {
            cluster.broker.ready(&dead).await >= all
        })
        .await;
        load.until_empty(&cluster.broker).await;
        away.end().await;
        cluster.until_whole().await;
    })
    .await;

    let mut letters = BTreeMap::<u64, usize>::new();
    while let Some(letter) = cluster.broker.take(&dead).await {
        let job = letter.envelope();
        assert_eq!(job.attempt, 2);
        let number = serde_json::from_str(job.payload.get()).unwrap();
        *letters.entry(number).or_default() += 1;
    }
    let again: usize = letters.values().map(|letters| letters - 1).sum();
    eprintln!(
        "    {jobs} jobs; {} runs, {} dead, {again} again; {} not settled, {} recognised",
        load.runs(),
        letters.len(),
        counts.settle_failures,
        counts.recognised,
    );
    assert!(letters.into_keys().eq(1..=jobs as u64), "jobs are lost");
    let in_hand = usize::from(load.queue.prefetch);
    assert!(again <= in_hand + HOPS, "{again} again");
}

pub async fn a_worker_whose_node_is_away_goes_on_by_way_of_another(broker: Broker) {
    let cluster = Cluster::of(broker);
    let backend = cluster.backend(2, quick()).await;
    let producer = cluster.backend(3, quick()).await;
    let load = replicated(&cluster, &backend).await;
    give_back_soon(&cluster, &load);

    let worker = load.worker(&backend, 20 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&producer, 300).await;
        load.until_runs(50).await;
        let away = cluster.kill(2).await;
        load.until_done().await;
        load.enqueue_many(&producer, 100).await;
        load.until_done().await;
        away.end().await;
        cluster.until_whole().await;
        load.until_empty(&cluster.broker).await;
    })
    .await;

    let again = load.account(&cluster.broker, counts).await;
    assert_eq!(again, 0, "the worker knows what comes back to it");
}

pub async fn a_classic_queue_whose_node_is_away_is_worked_on_once_it_is_back(broker: Broker) {
    let cluster = Cluster::of(broker);
    let home = cluster.backend(1, quick()).await;
    let backend = cluster.backend(2, quick()).await;
    let load = Load::on(&home, cluster.broker.queue()).await;
    load.enqueue_many(&home, 300).await;

    let worker = load.worker(&backend, 20 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.until_runs(50).await;
        let away = cluster.kill(1).await;
        let answer = load.enqueue(&backend).await;
        assert!(matches!(answer, Err(Error::Nacked { .. })), "{answer:?}");
        away.end().await;
        load.enqueue_many(&backend, 100).await;
        load.until_done().await;
        load.until_empty(&cluster.broker).await;
    })
    .await;

    let again = load.account(&cluster.broker, counts).await;
    assert_eq!(again, 0, "the worker knows what comes back to it");
}
