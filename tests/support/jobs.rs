//! Jobs that are numbers, and how they arrive.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
    time::Duration,
};

use futures_lite::{Stream, StreamExt, future};
use queuey_rabbitmq::{Counts, QueueConfig, Result, WorkerBuilder, prelude::*};

use super::{pause, until, within};

pub const MS: Duration = Duration::from_millis(1);

/// How long a job that must not arrive is waited for.
const SILENCE: Duration = Duration::from_millis(150);

/// A job with this number as its payload.
pub fn envelope(queue: &QueueConfig, number: u64) -> Envelope {
    let payload = serde_json::value::to_raw_value(&number).unwrap();
    Envelope::raw("number", &queue.name, payload)
}

pub fn number<D: Delivery>(delivery: &D) -> u64 {
    serde_json::from_str(delivery.envelope().payload.get()).unwrap()
}

/// The next delivery.
pub async fn next<S, D>(deliveries: &mut S) -> D
where
    S: Stream<Item = Result<D>> + Unpin,
{
    within("a delivery", deliveries.next())
        .await
        .expect("the stream goes on")
        .expect("a delivery")
}

/// The numbers of the next `count` jobs, acked.
pub async fn ack_numbers<S, D>(deliveries: &mut S, count: usize) -> Vec<u64>
where
    D: Delivery,
    S: Stream<Item = Result<D>> + Unpin,
{
    let mut numbers = vec![];
    for _ in 0..count {
        let delivery = next(deliveries).await;
        numbers.push(number(&delivery));
        delivery.ack().await.unwrap();
    }
    numbers
}

/// Fails when a delivery arrives although none should.
pub async fn nothing<S, D>(deliveries: &mut S)
where
    S: Stream<Item = Result<D>> + Unpin,
{
    let arrived = async { deliveries.next().await.is_some() };
    let silent = async {
        pause(SILENCE).await;
        false
    };
    assert!(!future::or(arrived, silent).await);
}

/// The payload of [`envelope`], for a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Number(pub u64);

impl Job for Number {
    type Queue = Named;
    const NAME: &'static str = "number";
    const QUEUE: Named = Named("any");
}

/// A queue set whose names are made at run time, one per test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Named(pub &'static str);

impl QueueSet for Named {
    fn all() -> &'static [Self] {
        &[]
    }

    fn name(&self) -> &'static str {
        self.0
    }

    fn config(&self) -> QueueConfig {
        let configs = CONFIGS.lock().unwrap();
        configs
            .get(self.0)
            .cloned()
            .unwrap_or_else(|| QueueConfig::new(self.0))
    }
}

static CONFIGS: LazyLock<Mutex<HashMap<&str, QueueConfig>>> = LazyLock::new(Mutex::default);

/// `queue` as it is, in a set.
pub fn named(queue: &QueueConfig) -> Named {
    let name = queue.name.clone().leak();
    CONFIGS.lock().unwrap().insert(name, queue.clone());
    Named(name)
}

/// Runs the worker until `done` of its counts, then shuts it down.
pub async fn run_until<B: Backend>(
    builder: WorkerBuilder<Named, B>,
    what: &str,
    done: impl Fn(Counts) -> bool,
) -> Counts {
    let worker = builder.build().await.unwrap();
    let handle = worker.handle();
    let stop = async {
        until(what, async || done(handle.counts())).await;
        handle.shutdown();
    };
    let (report, ()) = within(what, future::zip(worker.run(), stop)).await;
    report.unwrap().counts
}
