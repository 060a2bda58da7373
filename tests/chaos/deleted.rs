//! The queue goes while a worker consumes it.

use std::time::Duration;

use queuey_rabbitmq::{Attempt, Error, RabbitMqOptions, Rebuilding, ReconnectPolicy};

use crate::{
    load::{Load, beside},
    support::{Broker, jobs::*, until, within},
};

pub async fn a_worker_goes_on_when_its_queue_was_deleted(broker: Broker) {
    let backend = broker.backend().await;
    let load = Load::on(&backend, broker.queue()).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        for _ in 0..3 {
            load.enqueue_many(&backend, 10).await;
            load.until_done().await;
            broker.delete(&load.queue.name).await;
            until("the queue again", async || {
                load.enqueue(&backend).await.is_ok()
            })
            .await;
        }
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

/// Leaves time for others before a subscription is made again.
#[derive(Debug)]
struct Slowly;

impl ReconnectPolicy for Slowly {
    fn next_delay(&self, attempt: &Attempt<'_>) -> Option<Duration> {
        match attempt.rebuilding {
            Rebuilding::Consumer => Some(1000 * MS),
            _ => Some(Duration::ZERO),
        }
    }
}

pub async fn a_worker_whose_queue_was_replaced_by_another_kind_ends_and_says_so(broker: Broker) {
    let options = RabbitMqOptions::new().reconnect_with(Slowly);
    let backend = broker.backend_with(options).await;
    let load = Load::on(&backend, broker.queue()).await;
    let name = &load.queue.name;
    load.enqueue_many(&backend, 10).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let handle = worker.handle();
    let replaced = async {
        load.until_done().await;
        broker.delete(name).await;
        broker.declare(name, &[]).await;
    };
    let (end, ()) = futures_lite::future::zip(within("the end", worker.run()), replaced).await;

    let error = end.unwrap_err();
    assert!(
        matches!(&error, Error::Precondition { queue, .. } if queue == name),
        "{error:?}"
    );
    load.account(&broker, handle.counts()).await;
}
