//! A body that the broker takes offence at.

use futures_lite::future::zip;
use futures_util::future::join_all;
use queuey_rabbitmq::{Backend, Envelope, Error, RabbitMqOptions};

use crate::{
    load::{Load, beside},
    support::{Broker, jobs::*, until},
};

const MIB: usize = 1024 * 1024;

pub async fn a_body_too_large_for_the_broker_fails_alone(broker: Broker) {
    if std::env::var("RABBITMQ_VERSION").is_ok_and(|version| version.starts_with("3.")) {
        // What is the default from 4.0 on.
        let limit = |bytes| format!("application:set_env(rabbit, max_message_size, {bytes}).");
        broker.ctl(&["eval", &limit(16 * MIB)]);
        broker.ctl_later(&["eval", &limit(128 * MIB)]);
    }
    let options = RabbitMqOptions::new().max_message_size(64 * MIB);
    let backend = broker.backend_with(options).await;
    let load = Load::on(&backend, broker.queue()).await;
    let text = "x".repeat(20 * MIB);
    let payload = serde_json::value::to_raw_value(&text).unwrap();
    let large = Envelope::raw("number", &load.queue.name, payload);

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        for _ in 0..3 {
            let small = join_all((0..50).map(|_| load.enqueue(&backend)));
            let (refused, small) = zip(backend.publish(&large, None), small).await;

            assert!(
                matches!(&refused, Err(Error::PayloadTooLarge { queue, size, limit })
                    if *queue == load.queue.name && *size > 20 * MIB && *limit == 16 * MIB),
                "{refused:?}"
            );
            assert!(small.iter().all(Result::is_ok), "{small:?}");
        }
        load.until_done().await;
        until("an empty queue", async || {
            broker.ready(&load.queue.name).await == Some(0)
        })
        .await;
    })
    .await;

    load.account(&broker, counts).await;
    assert_eq!(counts.dead_lettered, 0);
}
