//! The broker runs out of memory or disk.

use std::time::Instant;

use queuey_rabbitmq::{Backend, Error, RabbitMqOptions};

use crate::{
    load::{Load, beside},
    node::Restore,
    support::{Broker, jobs::*, until, within},
};

const MEMORY: &str = "set_vm_memory_high_watermark";
const NO_MEMORY: &str = "0.000001";

pub async fn an_alarm_for_memory_stops_publishes_and_nothing_else(broker: Broker) {
    let old = memory(&broker).await;
    alarm(&broker, MEMORY, NO_MEMORY, &old).await;
}

async fn memory(broker: &Broker) -> String {
    let old = "vm_memory_monitor:get_vm_memory_high_watermark().";
    let old = broker.ctl_beside(&["eval", old]).await;
    assert!(old.trim().parse::<f64>().is_ok(), "{old}");
    old
}

/// Begins an alarm for memory that lasts until the answer is dropped.
pub async fn out_of_memory(broker: &Broker) -> Restore {
    let old = memory(broker).await;
    let restore = Restore(broker.clone(), vec![MEMORY.into(), old.trim().into()]);
    broker.ctl_beside(&[MEMORY, NO_MEMORY]).await;
    restore
}

pub async fn an_alarm_for_disk_stops_publishes_and_nothing_else(broker: Broker) {
    let old = "rabbit_disk_monitor:get_disk_free_limit().";
    let old = broker.ctl_beside(&["eval", old]).await;
    alarm(&broker, "set_disk_free_limit", "1000000000000000", &old).await;
}

const JOBS: usize = 200;

async fn alarm(broker: &Broker, setting: &str, low: &str, old: &str) {
    let options = RabbitMqOptions::new().publish_timeout(2000 * MS);
    let backend = broker.backend_with(options.clone()).await;
    let other = broker.backend_with(options).await;
    let load = Load::on(&backend, broker.queue()).await;
    load.enqueue_many(&other, JOBS).await;

    // No job is done before the alarm, some are under way.
    let (gate, alarm_is_on) = async_channel::bounded::<()>(1);
    let worker = load.worker_with(&backend, move |_| {
        let alarm_is_on = alarm_is_on.clone();
        async move {
            let _closed = alarm_is_on.recv().await;
            Ok(())
        }
    });
    let worker = worker.build().await.unwrap();
    let handle = worker.handle();
    let counts = beside(worker, async {
        load.until_runs(1).await;
        let restore = vec![setting.to_owned(), old.trim().to_owned()];
        let restore = Restore(broker.clone(), restore);
        broker.ctl_beside(&[setting, low]).await;

        let answer = load.enqueue(&backend).await;
        assert!(matches!(answer, Err(Error::Blocked { .. })), "{answer:?}");
        assert!(backend.is_blocked());
        assert!(backend.is_connected());
        let start = Instant::now();
        let answer = load.enqueue(&backend).await;
        assert!(matches!(answer, Err(Error::Blocked { .. })), "{answer:?}");
        let took = start.elapsed();
        assert!((2000 * MS..4000 * MS).contains(&took), "{took:?}");

        // What is on the queue is run and acked under the alarm.
        gate.close();
        let acks = || handle.counts().succeeded;
        until("acks", async || acks() == JOBS as u64).await;
        until("an empty queue", async || {
            broker.listed(&load.queue.name, &["messages"]) == Some(vec!["0".into()])
        })
        .await;

        let answer = load.enqueue(&other).await;
        assert!(matches!(answer, Err(Error::Blocked { .. })), "{answer:?}");
        let start = Instant::now();
        within("a close", other.close()).await.unwrap();
        let took = start.elapsed();
        assert!(took < 12_000 * MS, "{took:?}");

        restore.now().await;
        until("no longer blocked", async || !backend.is_blocked()).await;
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
    })
    .await;

    let repeats = load.account(broker, counts).await;
    assert_eq!(repeats, 0);
}
