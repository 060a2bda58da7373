//! Jobs that take longer than the broker waits for their acks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use queuey_rabbitmq::{JobContext, JobError, QueueConfig, QueueKind, RabbitMqBackend};

use crate::{
    lines::{self, listen},
    load::{Builder, Load, beside},
    node::Restore,
    support::{self, Broker, jobs::*, pause, until},
};

/// How long the broker waits for an ack here, where it does not wait for ever.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Makes [`TIMEOUT`] what the broker goes by of itself, until it is dropped; before 4.3, channels
/// look every so often.
async fn broker_is_impatient(broker: &Broker) -> Restore {
    let set = |values: &str| {
        format!(
            "lists:zipwith(fun(Key, New) -> {{ok, Old}} = application:get_env(rabbit, Key), \
             application:set_env(rabbit, Key, New), Old end, \
             [consumer_timeout, channel_tick_interval], {values})."
        )
    };
    let values = format!("[{}, 500]", TIMEOUT.as_millis());
    let before = broker.ctl_beside(&["eval", &set(&values)]).await;
    let back = vec!["eval".to_owned(), set(before.trim())];
    Restore(broker.clone(), back)
}

/// How many lines of the log about `queue` contain `words`.
fn said(queue: &QueueConfig, words: &str) -> usize {
    let about = lines::about(&queue.name);
    about
        .iter()
        .filter(|(_, line)| line.contains(words))
        .count()
}

const LOST: &str = "the subscription to";
const ADVICE: &str = "for longer than the broker waits for an ack";

/// A worker whose first job takes `long` and all others some milliseconds.
fn worker(load: &Load, backend: &RabbitMqBackend, long: Duration) -> Builder {
    let first = Arc::new(AtomicBool::new(true));
    load.worker_with(backend, move |_: JobContext| {
        let time = match first.swap(false, Ordering::Relaxed) {
            true => long,
            false => 5 * MS,
        };
        async move {
            pause(time).await;
            Ok::<_, JobError>(())
        }
    })
}

/// What the operator of this broker, or the application, has to set for such a queue.
fn to_set(kind: QueueKind) -> Option<&'static str> {
    match (version(), kind) {
        ((..=3, _), _) => Some("have `consumer_timeout` raised in rabbitmq.conf"),
        ((4, ..=2), _) => Some("have a policy set `consumer-timeout`"),
        (_, QueueKind::Quorum) => Some("raise `QueueConfig::consumer_timeout`"),
        // It waits for ever.
        _ => None,
    }
}

fn version() -> (u32, u32) {
    support::version().expect("run by tests/with-broker")
}

/// One job that takes `long` runs once, however often it comes back.
async fn one_long_job(broker: &Broker, load: &Load, backend: &RabbitMqBackend, long: Duration) {
    let worker = worker(load, backend, long).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue(backend).await.unwrap();
        load.until_done().await;
        load.until_empty(broker).await;
    })
    .await;
    assert_eq!(load.account(broker, counts).await, 0);
}

pub async fn a_long_job_of_a_classic_queue_runs_once(broker: Broker) {
    runs_once(broker.clone(), broker.queue()).await;
}

pub async fn a_long_job_of_a_quorum_queue_runs_once(broker: Broker) {
    let queue = broker.queue().kind(QueueKind::Quorum);
    runs_once(broker.clone(), queue).await;
}

async fn runs_once(broker: Broker, queue: QueueConfig) {
    listen();
    let _restore = broker_is_impatient(&broker).await;
    let backend = broker.backend().await;
    let load = Load::on(&backend, queue).await;
    let to_set = to_set(load.queue.kind);

    let worker = worker(&load, &backend, 4 * TIMEOUT).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue(&backend).await.unwrap();
        load.until_runs(1).await;
        if to_set.is_some() {
            until("two ends of the subscription", async || {
                said(&load.queue, LOST) >= 2
            })
            .await;
        }
        load.enqueue_many(&backend, 30).await;
        load.until_done().await;
        load.until_empty(&broker).await;
        // And it goes on.
        load.enqueue_many(&backend, 30).await;
        load.until_done().await;
        load.until_empty(&broker).await;
    })
    .await;

    assert_eq!(load.account(&broker, counts).await, 0);
    assert_eq!(load.runs(), 61);
    match to_set {
        Some(words) => assert!(said(&load.queue, words) >= 2, "{words}"),
        None => assert_eq!((said(&load.queue, LOST), said(&load.queue, ADVICE)), (0, 0)),
    }
}

/// The queue remembers each consumer that held a job too long, and serves it again after the ack.
pub async fn only_the_last_consumer_is_left_while_a_long_job_goes_on(broker: Broker) {
    listen();
    let _restore = broker_is_impatient(&broker).await;
    let backend = broker.backend().await;
    let queue = broker.queue().kind(QueueKind::Quorum);
    let load = Load::on(&backend, queue).await;
    let over = Arc::new(AtomicBool::new(false));
    let (first, end) = (AtomicBool::new(true), over.clone());

    let worker = load.worker_with(&backend, move |_| {
        let (is_long, end) = (first.swap(false, Ordering::Relaxed), end.clone());
        async move {
            if is_long {
                until("the end", async || end.load(Ordering::Relaxed)).await;
            }
            Ok(())
        }
    });
    let counts = beside(worker.build().await.unwrap(), async {
        load.enqueue(&backend).await.unwrap();
        until("two ends of the subscription", async || {
            said(&load.queue, LOST) >= 2
        })
        .await;
        until("one consumer", async || {
            let listed = broker.ctl_beside(&["list_consumers", "queue_name"]).await;
            listed
                .lines()
                .filter(|line| *line == load.queue.name)
                .count()
                == 1
        })
        .await;
        load.enqueue_many(&backend, 30).await;
        until("the other jobs", async || load.done() == 30).await;
        over.store(true, Ordering::Relaxed);
        load.until_done().await;
        load.until_empty(&broker).await;
    })
    .await;

    assert_eq!(load.account(&broker, counts).await, 0);
}

pub async fn a_queue_that_asks_for_more_time_gets_it_or_says_who_must(broker: Broker) {
    listen();
    let _restore = broker_is_impatient(&broker).await;
    let mut queues = vec![broker.queue()];
    if version() >= (4, 0) {
        queues.push(broker.queue().kind(QueueKind::Quorum));
    }
    for queue in queues {
        let queue = queue.consumer_timeout(Duration::MAX);
        let backend = broker.backend().await;
        let load = Load::on(&backend, queue).await;
        let name = &load.queue.name;
        let has_it = matches!((version(), load.queue.kind), ((4, 3..), _));
        let no_effect = format!("`consumer_timeout` of `{name}` has no effect");
        let asks = version() >= (4, 3) && load.queue.kind == QueueKind::Quorum;
        let by_policy = !has_it && version() >= (3, 12);
        if by_policy {
            // What the line in the log says.
            broker.policy(name, r#"{"consumer-timeout":1099511627776}"#);
        }

        one_long_job(&broker, &load, &backend, 3 * TIMEOUT).await;

        assert_eq!(said(&load.queue, &no_effect), usize::from(!asks));
        let lost = said(&load.queue, LOST);
        assert_eq!(lost > 0, !has_it && !by_policy, "{lost} times");
    }
}

pub async fn a_job_timeout_beyond_it_is_told_at_the_start(broker: Broker) {
    const MINUTE: Duration = Duration::from_secs(60);
    listen();
    let backend = broker.backend().await;
    let kind = match version() {
        (..=3, _) => QueueKind::Classic,
        _ => QueueKind::Quorum,
    };
    for (minutes, times) in [(30, 1), (29, 0)] {
        let load = Load::on(&backend, broker.queue().kind(kind)).await;
        let worker = worker(&load, &backend, MS).job_timeout(minutes * MINUTE);
        beside(worker.build().await.unwrap(), async {
            load.enqueue(&backend).await.unwrap();
            load.until_done().await;
        })
        .await;

        let told = said(&load.queue, "but unless the broker was told otherwise");
        assert_eq!(told, times, "{minutes} minutes");
    }
}

pub async fn a_queue_that_asks_for_less_time_gets_less(broker: Broker) {
    listen();
    let queue = broker.queue().kind(QueueKind::Quorum);
    let queue = queue.consumer_timeout(TIMEOUT);
    let backend = broker.backend().await;
    let load = Load::on(&backend, queue).await;

    one_long_job(&broker, &load, &backend, 2 * TIMEOUT).await;

    assert!(said(&load.queue, ADVICE) >= 1);
}
