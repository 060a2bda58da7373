//! The broker hangs, and its sockets stay open.

use std::{
    fs,
    time::{Duration, Instant},
};

use futures_lite::future::zip;
use queuey_rabbitmq::{Backend, Error, RabbitMqBackend};

use crate::{
    heartbeat,
    load::{Load, beside},
    node, quick,
    support::{Broker, jobs::*, until, within},
};

pub async fn a_broker_that_hangs_holds_nobody_for_longer_than_agreed(broker: Broker) {
    let limit = 3000 * MS;
    let url = heartbeat(&broker.url, Duration::from_secs(2));
    let options = quick()
        .publish_timeout(limit)
        .connect_timeout(2000 * MS)
        .runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&url, options.clone()).await;
    let backend = backend.unwrap();
    let load = Load::on(&backend, broker.queue()).await;
    let worker = load.worker(&backend, MS).build().await.unwrap();
    let second = load.worker(&backend, MS).build().await.unwrap();
    let stop = second.handle();

    let counts = beside(worker, async {
        let script = async {
            load.enqueue_many(&backend, 20).await;
            load.until_done().await;
            let away = node::pause().await;

            for _ in 0..2 {
                let start = Instant::now();
                let answer = within("an answer", load.enqueue(&backend)).await;
                let took = start.elapsed();
                assert!(matches!(answer, Err(Error::TimedOut { .. })), "{answer:?}");
                assert!((limit..2 * limit).contains(&took), "{took:?}");
            }
            let start = Instant::now();
            let answer = RabbitMqBackend::with_options(&url, options).await;
            let took = start.elapsed();
            assert!(matches!(answer, Err(Error::TimedOut { .. })), "{answer:?}");
            assert!((2000 * MS..4000 * MS).contains(&took), "{took:?}");
            let asked = Instant::now();
            stop.shutdown();
            (away, asked)
        };
        let ended = async {
            second.run().await.unwrap();
            Instant::now()
        };
        let ((away, asked), ended) = zip(script, within("the end", ended)).await;
        assert!(ended - asked < 5000 * MS, "{:?}", ended - asked);

        away.end().await;
        until("an enqueue", async || load.enqueue(&backend).await.is_ok()).await;
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

/// How many connections lapin keeps in this process.
fn kept() -> usize {
    let names = fs::read_dir("/proc/self/task").unwrap().filter_map(|task| {
        // A thread may end in between.
        fs::read_to_string(task.unwrap().path().join("comm")).ok()
    });
    names.filter(|name| name.trim() == "lapin-io-loop").count()
}

pub async fn nothing_is_left_of_what_was_closed_while_the_broker_hangs(broker: Broker) {
    let before = kept();
    let (closed, dropped) = (broker.backend().await, broker.backend().await);
    let queue = broker.queue();
    closed.declare(std::slice::from_ref(&queue)).await.unwrap();
    let _deliveries = closed.consume(&queue).await.unwrap();
    assert_eq!(kept(), before + 3);
    let away = node::pause().await;

    within("the end", closed.close()).await.unwrap();
    drop(dropped);

    until("their end", async || kept() == before).await;
    away.end().await;
}
