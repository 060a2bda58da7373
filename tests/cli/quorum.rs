//! What differs where the queues are quorum queues.

use std::time::{Duration, Instant};

use queuey_rabbitmq::{
    Backend, Envelope, QueueConfig, QueueKind, codec,
    lapin::{BasicProperties, types::AMQPValue},
};

use crate::{
    support::{Broker, version},
    tool::{bury, declared, drained, job, json, printed, ready, run, text},
};

async fn declared_quorum(broker: &Broker) -> QueueConfig {
    let queue = broker.queue().kind(QueueKind::Quorum);
    let backend = broker.backend().await;
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    queue
}

pub async fn a_delayed_job_waits_in_a_quorum_queue(broker: Broker) {
    let queue = declared_quorum(&broker).await;
    let enqueue = ["enqueue", &queue.name, "a", "1", "--delay", "1s"];
    let began = Instant::now();

    printed(&broker, &[&enqueue[..], &["--quorum"]].concat()).await;

    let classic = format!("{}.deferred.1000", queue.name);
    assert_eq!(broker.ready(&classic).await, None);
    ready(&broker, &queue.name, 1).await;
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(drained(&broker, &queue.name).await, [("a".into(), 1)]);
}

pub async fn a_broker_without_them_is_told_and_gets_nothing(broker: Broker) {
    if version().is_none_or(|version| version >= (4, 0)) {
        return;
    }
    let queue = declared(&broker).await;
    let enqueue = ["enqueue", &queue.name, "a", "1"];

    let output = run(
        &broker,
        &[&enqueue[..], &["--delay", "1s", "--quorum"]].concat(),
    )
    .await;

    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("a quorum queue needs RabbitMQ 4.0 or later, this is 3."),
        "{said}"
    );
    assert_eq!(broker.ready("queuey.ladder.0").await, None);
}

pub async fn a_move_loses_nothing_and_keeps_order_and_headers(broker: Broker) {
    let (from, to) = (
        declared_quorum(&broker).await,
        declared_quorum(&broker).await,
    );
    let types = ["meant", "other"];
    for number in 0..200 {
        let job = job(&from, types[number as usize % 2], number);
        let mut headers = codec::properties(&job).headers().clone().unwrap();
        headers.insert("tenant".into(), AMQPValue::LongUInt(number as u32));
        let properties = codec::properties(&job).with_headers(headers);
        broker
            .publish(&from.name, &job.to_bytes(), properties)
            .await;
    }
    // Without a priority it would come before those of none.
    let foreign = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_priority(0);
    broker.publish(&from.name, b"no job", foreign.clone()).await;

    let some = ["move", &from.name, &to.name, "--type", "meant"];
    let meant = json(&broker, &some).await;
    ready(&broker, &to.name, 100).await;
    let others = json(&broker, &["move", &from.name, &to.name]).await;

    assert_eq!(
        [&meant[0]["moved"], &meant[0]["kept"], &others[0]["moved"]],
        [100, 101, 101]
    );
    ready(&broker, &to.name, 201).await;
    assert_eq!(broker.ready(&from.name).await, Some(0));
    for number in (0..200).step_by(2).chain((1..200).step_by(2)) {
        let message = broker.take(&to.name).await.unwrap();
        let job: Envelope = message.envelope();
        assert_eq!(
            (&job.queue, job.payload.get()),
            (&to.name, &*number.to_string())
        );
        assert_eq!(message.header("tenant"), Some(number.to_string()));
        assert_eq!(message.header("x-attempt").as_deref(), Some("1"));
    }
    let last = broker.take(&to.name).await.unwrap();
    assert_eq!(last.body, b"no job");
    assert_eq!(last.properties.content_type(), foreign.content_type());
}

pub async fn a_replay_keeps_the_order(broker: Broker) {
    let queue = declared_quorum(&broker).await;
    let dead = format!("{}.dead", queue.name);
    let types = ["meant", "other", "other"];
    let jobs: Vec<_> = (0..900)
        .map(|it| job(&queue, types[it as usize % 3], it))
        .collect();
    bury(&broker, &queue, &jobs, "it broke").await;
    ready(&broker, &dead, 900).await;

    json(&broker, &["dead", "list", &queue.name]).await;
    json(&broker, &["dead", "replay", &queue.name, "--type", "meant"]).await;

    ready(&broker, &dead, 600).await;
    let others = drained(&broker, &dead)
        .await
        .into_iter()
        .map(|(_, number)| number);
    assert!(others.eq((0..900).filter(|number| number % 3 != 0)));
    ready(&broker, &queue.name, 300).await;
    let meant = drained(&broker, &queue.name).await.into_iter();
    let meant: Vec<_> = meant.map(|(_, number)| number).collect();
    assert_eq!(meant, (0..900).step_by(3).collect::<Vec<_>>());
}
