//! What was to happen at a certain time happens then, whatever the link does meanwhile.

use std::time::{Duration, Instant};

use futures_lite::future::{self, zip};
use queuey_rabbitmq::{Backend, RetryPolicy};

use crate::{
    load::{Load, beside},
    quick,
    relay::Relay,
    support::{Broker, jobs::*, pause, until, within},
    through,
};

const LIMIT: Duration = Duration::from_secs(3);

/// Cuts the link three times, each when a subscription has been made since the last.
async fn three_cuts(relay: &Relay, resubscribed: impl Fn() -> u64) {
    for times in 1..=3 {
        relay.cut();
        until("a subscription", async || resubscribed() == times).await;
        pause(100 * MS).await;
    }
}

pub async fn a_job_timeout_ends_a_job_across_three_reconnects(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let backend = through(&broker, &relay, quick()).await;
    let load = Load::on(&backend, broker.queue()).await;
    let builder = load.worker_with(&backend, |ctx| async move {
        match ctx.attempt {
            1 => future::pending().await,
            _ => Ok(()),
        }
    });
    let builder = builder.job_timeout(LIMIT);
    let builder = builder.job_retry_override::<Number>(RetryPolicy::fixed(2, MS));
    let worker = builder.build().await.unwrap();
    let handle = worker.handle();
    let counts = beside(worker, async {
        let number = load.enqueue(&backend).await.unwrap();
        load.until_runs(1).await;
        let cuts = three_cuts(&relay, || handle.health()[0].resubscribed);
        let retried = until("a retry", async || handle.counts().retried == 1);
        zip(cuts, retried).await;
        let took = load.runs_of(number, 1)[0].elapsed();
        assert!((LIMIT..2 * LIMIT).contains(&took), "{took:?}");
        load.until_done().await;
        assert_eq!(load.runs_of(number, 1).len(), 1);
    })
    .await;

    assert_eq!(load.account(&broker, counts).await, 0);
}

pub async fn a_shutdown_ends_at_its_deadline_across_three_cuts(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let backend = through(&broker, &relay, quick()).await;
    let load = Load::on(&backend, broker.queue()).await;
    let builder = load.worker_with(&backend, |_| future::pending());
    let worker = builder.shutdown_deadline(LIMIT).build().await.unwrap();
    let handle = worker.handle();
    let stopped = async {
        load.enqueue(&backend).await.unwrap();
        load.until_runs(1).await;
        let asked = Instant::now();
        handle.shutdown();
        for _ in 0..3 {
            pause(500 * MS).await;
            relay.cut();
            until("a connection", async || backend.is_connected()).await;
        }
        asked
    };
    let ended = async {
        let report = worker.run().await.unwrap();
        (report, Instant::now())
    };
    let (asked, (report, ended)) = within("the end", zip(stopped, ended)).await;

    let took = ended - asked;
    assert!((LIMIT..LIMIT + 2000 * MS).contains(&took), "{took:?}");
    assert_eq!(report.counts.dropped, 1);
    until("the job back", async || {
        broker.ready(&load.queue.name).await == Some(1)
    })
    .await;
    backend.close().await.unwrap();
}
