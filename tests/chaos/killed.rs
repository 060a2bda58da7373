//! The broker is killed and started again.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use queuey_rabbitmq::{RabbitMqBackend, RetryPolicy};

use crate::{
    load::{Load, beside},
    node, quick,
    support::{Broker, is_long, jobs::*, pause, until},
};

/// A queue just declared is on the disk of the broker, which before 4.3 says yes to it sooner.
async fn queues_on_disk(broker: &Broker) {
    let sync = "catch mnesia:sync_log().";
    broker.ctl_beside(&["eval", sync]).await;
}

async fn durable_load(broker: &Broker) -> (RabbitMqBackend, Load) {
    let backend = broker.backend_with(quick()).await;
    let load = Load::on(&backend, broker.queue()).await;
    queues_on_disk(broker).await;
    (backend, load)
}

/// As many jobs, three times as many in the long form.
fn times(jobs: usize) -> usize {
    if is_long() { 3 * jobs } else { jobs }
}

pub async fn jobs_enqueued_around_its_end_all_run(broker: Broker) {
    let (backend, load) = durable_load(&broker).await;

    let worker = load.worker(&backend, 5 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        let killing = async {
            for _ in 0..times(1) {
                let goal = load.stored() + 300;
                until("jobs stored", async || load.stored() >= goal).await;
                node::kill().await.end().await;
            }
            let goal = load.stored() + 100;
            until("more jobs stored", async || load.stored() >= goal).await;
        };
        load.enqueue_during(&backend, 5 * MS, killing).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
    assert!(load.refusals().is_empty(), "{:?}", load.refusals());
}

pub async fn jobs_that_ran_at_its_end_run_again(broker: Broker) {
    let (backend, load) = durable_load(&broker).await;
    load.enqueue_many(&backend, times(100)).await;

    let worker = load.worker(&backend, 300 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.until_runs(40).await;
        node::kill().await.end().await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

pub async fn jobs_that_waited_for_another_attempt_get_it(broker: Broker) {
    let (backend, load) = durable_load(&broker).await;
    load.enqueue_many(&backend, times(100)).await;

    let worker = load
        .worker_with(&backend, |context| async move {
            pause(200 * MS).await;
            match context.attempt {
                1 => Err(std::io::Error::other("not yet").into()),
                _ => Ok(()),
            }
        })
        .job_retry_override::<Number>(RetryPolicy::fixed(3, 3000 * MS))
        .build()
        .await
        .unwrap();
    let handle = worker.handle();
    let counts = beside(worker, async {
        until("a retry", async || handle.counts().retried > 0).await;
        queues_on_disk(&broker).await;
        node::kill().await.end().await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

pub async fn jobs_whose_wait_ended_while_it_was_away_run_afterwards(broker: Broker) {
    let (backend, load) = durable_load(&broker).await;
    let waits = [3000 * MS, 4000 * MS, 5000 * MS, 6000 * MS];
    let start = Instant::now();
    let held = (0..times(100)).map(|job| {
        let (load, backend, wait) = (&load, &backend, waits[job % waits.len()]);
        async move {
            let number = load.enqueue_after(backend, wait).await.unwrap();
            (number, wait)
        }
    });
    let held = join_all(held).await;
    queues_on_disk(&broker).await;
    let away = node::kill().await;
    pause((8000 * MS).saturating_sub(start.elapsed())).await;
    away.end().await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, load.until_done()).await;

    load.account(&broker, counts).await;
    for (number, wait) in held {
        let run = load.runs_of(number, 1)[0];
        assert!(run - start >= wait, "job {number} is early");
    }
}

pub async fn a_worker_outlives_one_restart_after_another(broker: Broker) {
    let (backend, load) = durable_load(&broker).await;
    let restarts = if is_long() { 20 } else { 3 };

    let worker = load.worker(&backend, 5 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        let restarting = async {
            for _ in 0..restarts {
                pause(Duration::from_millis(fastrand::u64(0..3000))).await;
                node::kill().await.end().await;
                let goal = load.stored() + 50;
                until("more jobs stored", async || load.stored() >= goal).await;
            }
        };
        load.enqueue_during(&backend, 10 * MS, restarting).await;
        load.until_done().await;
    })
    .await;

    let repeats = load.account(&broker, counts).await;
    // What was in hand and what was published and not confirmed, each time.
    let in_flight = usize::from(load.queue.prefetch) + crate::load::CALLERS;
    assert!(repeats <= restarts * in_flight, "{repeats} repeats");
    assert!(load.refusals().is_empty(), "{:?}", load.refusals());
}
