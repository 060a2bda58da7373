//! The link is slow.

use futures_util::future::join_all;
use queuey_rabbitmq::RetryPolicy;

use crate::{
    load::{Load, beside},
    relay::Relay,
    support::{Broker, is_long, jobs::*},
    through,
};

pub async fn jobs_and_retries_are_neither_lost_nor_early_on_a_slow_link(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let delay = 1000 * MS;
    let options = queuey_rabbitmq::RabbitMqOptions::new().retry_granularity(100 * MS);
    let backend = through(&broker, &relay, options).await;
    let load = Load::on(&backend, broker.queue()).await;
    relay.delay(50 * MS, 50 * MS);
    let rounds = if is_long() { 5 } else { 1 };

    let worker = load
        .worker_with(&backend, |context| async move {
            match context.attempt {
                1 => Err(std::io::Error::other("not yet").into()),
                _ => Ok(()),
            }
        })
        .job_retry_override::<Number>(RetryPolicy::fixed(2, delay))
        .build()
        .await
        .unwrap();
    let counts = beside(worker, async {
        for _ in 0..rounds {
            for answer in join_all((0..200).map(|_| load.enqueue(&backend))).await {
                answer.unwrap();
            }
            load.until_done().await;
        }
    })
    .await;

    let repeats = load.account(&broker, counts).await;
    for number in 1..=load.stored() as u64 {
        let (first, second) = (load.runs_of(number, 1), load.runs_of(number, 2));
        assert!(second[0] - first[0] >= delay, "job {number} is early");
    }
    // Only a hold confirmed too late is stored twice, and a second is long.
    assert_eq!(repeats, 0);
}
