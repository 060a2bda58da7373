//! The link stays open and says nothing.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use queuey_rabbitmq::{Error, RabbitMqBackend, RabbitMqOptions};

use crate::{
    heartbeat,
    load::{Load, beside},
    relay::{Relay, Way},
    support::{Broker, jobs::*, pause, until},
    through,
};

const HEARTBEAT: Duration = Duration::from_secs(2);

/// A worker goes on soon after its link fell silent these ways, and a publish does not hang.
async fn goes_on_after(broker: &Broker, ways: &[Way]) {
    let relay = Relay::to(&heartbeat(&broker.url, HEARTBEAT));
    let limit = 15_000 * MS;
    let options = RabbitMqOptions::new().publish_timeout(limit);
    let backend = through(broker, &relay, options).await;
    let load = Load::on(&backend, broker.queue()).await;
    let near = broker.backend().await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
        relay.fall_silent(ways);
        let start = Instant::now();
        let meanwhile = async {
            let answer = load.enqueue(&backend).await;
            let took = start.elapsed();
            assert!(took < limit + 1000 * MS, "{took:?}");
            eprintln!("    silent {ways:?}: a publish answered {answer:?} after {took:?}");
        };
        let heard = async {
            let number = load.enqueue(&near).await.unwrap();
            until("a run", async || !load.runs_of(number, 1).is_empty()).await;
            let took = start.elapsed();
            eprintln!("    silent {ways:?}: the worker went on after {took:?}");
            assert!(took < 3 * HEARTBEAT + 2000 * MS, "{took:?}");
        };
        futures_lite::future::zip(meanwhile, heard).await;
        load.until_done().await;
    })
    .await;

    load.account(broker, counts).await;
}

pub async fn a_half_open_link_is_noticed_and_made_again(broker: Broker) {
    let ways: [&[Way]; 3] = [&Way::BOTH, &[Way::ToBroker], &[Way::FromBroker]];
    join_all(ways.map(|ways| goes_on_after(&broker, ways))).await;
}

async fn behind_swallowed_confirms(broker: &Broker) -> (Relay, RabbitMqBackend, Load) {
    let relay = Relay::to(&broker.url);
    let options = RabbitMqOptions::new().publish_timeout(2000 * MS);
    let backend = through(broker, &relay, options).await;
    let load = Load::on(&backend, broker.queue()).await;
    load.enqueue(&backend).await.unwrap();
    relay.swallow_confirms(true);
    (relay, backend, load)
}

pub async fn a_confirm_that_never_comes_is_a_timeout_and_the_next_enqueue_works(broker: Broker) {
    let (relay, backend, load) = behind_swallowed_confirms(&broker).await;

    let start = Instant::now();
    let answer = load.enqueue(&backend).await;

    let took = start.elapsed();
    assert!(matches!(answer, Err(Error::TimedOut { .. })), "{answer:?}");
    assert!((2000 * MS..10_000 * MS).contains(&took), "{took:?}");
    relay.swallow_confirms(false);
    load.enqueue(&backend).await.unwrap();
    until("all three stored", async || {
        broker.ready(&load.queue.name).await == Some(3)
    })
    .await;
}

pub async fn many_confirms_that_never_come_do_not_hold_up_the_next_enqueue(broker: Broker) {
    let (relay, backend, load) = behind_swallowed_confirms(&broker).await;
    let answers = join_all((0..1100).map(|_| load.enqueue(&backend))).await;
    for answer in answers {
        assert!(matches!(answer, Err(Error::TimedOut { .. })), "{answer:?}");
    }

    relay.swallow_confirms(false);
    pause(100 * MS).await;
    let answer = load.enqueue(&backend).await;

    answer.unwrap();
}
