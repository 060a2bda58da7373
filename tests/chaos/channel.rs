//! The broker closes the channel of a consumer and nothing else.

use queuey_rabbitmq::RabbitMqOptions;

use crate::{
    cut::prefetches,
    load::{Load, beside},
    support::{Broker, is_long, jobs::*, pause, until},
};

/// Closes every channel with a consumer, so many times, five times a second: it has acked what it
/// was never sent.
async fn close_channels(broker: &Broker, times: usize) {
    let close = format!(
        "[begin [It ! {{'$gen_cast', {{method, {{'basic.ack', 999999999, false}}, none, noflow}}}} \
         || It <- rabbit_channel:list(), \
         (catch rabbit_channel:info(It, [consumer_count])) =:= [{{consumer_count, 1}}]], \
         timer:sleep(200) end || _ <- lists:seq(1, {times})], ok."
    );
    broker.ctl_beside(&["eval", &close]).await;
}

pub async fn jobs_all_run_while_their_channels_are_closed(broker: Broker) {
    let name = broker.name();
    let options = RabbitMqOptions::new().connection_name(&*name);
    let backend = broker.backend_with(options.retry_granularity(MS)).await;
    let load = Load::on(&backend, broker.queue()).await;
    let times = if is_long() { 100 } else { 25 };
    let prefetch = load.queue.prefetch.to_string();

    let worker = load.worker(&backend, 5 * MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
        let waiting = async {
            for _ in 0..times {
                load.enqueue_after(&backend, 300 * MS).await.unwrap();
                pause(100 * MS).await;
            }
        };
        let script = futures_lite::future::zip(close_channels(&broker, times), waiting);
        load.enqueue_during(&backend, 5 * MS, script).await;
        load.until_done().await;
        // And it goes on.
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
        until("the prefetch of before", async || {
            prefetches(&broker, &load.queue.name).await == [prefetch.as_str()]
        })
        .await;
        assert_eq!(broker.connections(&name).len(), 2);
    })
    .await;

    assert!(counts.recognised > 0, "no job was in hand");
    // The publishing connection is not touched: each is stored once, and runs once.
    assert_eq!(load.account(&broker, counts).await, 0);
    assert!(load.refusals().is_empty(), "{:?}", load.refusals());
}

pub async fn jobs_in_hand_of_a_closed_channel_run_once(broker: Broker) {
    let backend = broker.backend().await;
    let load = Load::on(&backend, broker.queue().prefetch(50)).await;

    let worker = load.worker(&backend, 5000 * MS).build().await.unwrap();
    let handle = worker.handle();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 50).await;
        load.until_runs(50).await;
        close_channels(&broker, 1).await;
        load.until_done().await;
        until("all are settled", async || handle.counts().succeeded == 50).await;
        load.enqueue(&backend).await.unwrap();
        load.until_done().await;
        let none_left = format!("{}\t0", load.queue.name);
        until("all are acked", async || {
            let listed = broker.ctl_beside(&["list_queues", "name", "messages"]);
            listed.await.lines().any(|line| line == none_left)
        })
        .await;
    })
    .await;

    assert_eq!(load.account(&broker, counts).await, 0);
    assert_eq!(load.runs(), 51);
    assert!(counts.recognised >= 50, "{counts:?}");
}
