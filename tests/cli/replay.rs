//! `queuey dead replay`.

use std::{
    collections::HashSet,
    process::Stdio,
    time::{Duration, Instant},
};

use queuey_rabbitmq::{
    Failure, codec,
    lapin::{BasicProperties, types::AMQPValue},
};

use crate::{
    support::{Broker, is_long, until},
    tool::{bury, command, declared, drained, job, json, ready, run, text},
};

pub async fn a_replayed_job_is_a_first_attempt_without_its_death(broker: Broker) {
    let queue = declared(&broker).await;
    let body = format!(
        r#"{{"job_id":"6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab", "job_type":"a","queue":"{}","attempt":4,"enqueued_at_ms":1,"deferrals":2,"priority":7,"later":[1, 2],"payload":{{"attempt":4, "n":1.0}}}}"#,
        queue.name
    );
    let dead = queuey_rabbitmq::Envelope::from_bytes(body.as_bytes()).unwrap();
    let properties = codec::dead_properties(&dead, "it broke", 4096);
    let mut headers = properties.headers().clone().unwrap();
    headers.insert("x-death-note".into(), AMQPValue::Boolean(true));
    headers.insert(
        "x-first-death-reason".into(),
        AMQPValue::LongString("expired".into()),
    );
    headers.insert("tenant".into(), AMQPValue::LongString("7".into()));
    let name = format!("{}.dead", queue.name);
    broker
        .publish(&name, body.as_bytes(), properties.with_headers(headers))
        .await;

    let done = json(&broker, &["dead", "replay", &queue.name]).await;

    assert_eq!(done[0]["replayed"], 1);
    let job = broker.take(&queue.name).await.unwrap();
    let first = body.replacen(r#""attempt":4"#, r#""attempt":1"#, 1);
    assert_eq!(text(&job.body), first);
    let headers = job.properties.headers().clone().unwrap();
    let names: Vec<_> = headers.inner().keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["tenant", "x-attempt", "x-deferrals"]);
    assert_eq!(job.header("x-attempt").as_deref(), Some("1"));
    assert_eq!(*job.properties.priority(), Some(7));
    assert_eq!(broker.ready(&name).await, Some(0));
}

pub async fn an_attempt_is_kept_when_asked(broker: Broker) {
    let queue = declared(&broker).await;
    let mut dead = job(&queue, "a", 1);
    dead.attempt = 4;
    bury(&broker, &queue, &[dead.clone()], "it broke").await;

    json(&broker, &["dead", "replay", &queue.name, "--keep-attempt"]).await;

    let message = broker.take(&queue.name).await.unwrap();
    assert_eq!(message.body, dead.to_bytes());
    assert_eq!(message.header("x-attempt").as_deref(), Some("4"));
}

pub async fn how_a_job_failed_outlives_its_replay(broker: Broker) {
    let queue = declared(&broker).await;
    let failure = Failure::new(3, "no such host");
    let dead = job(&queue, "a", 1).with_failure(&failure);
    bury(&broker, &queue, &[dead], "it broke").await;

    json(&broker, &["dead", "replay", &queue.name]).await;

    let message = broker.take(&queue.name).await.unwrap();
    assert_eq!(codec::failure(&message.properties), Some(failure));
}

pub async fn a_dry_run_changes_nothing(broker: Broker) {
    let queue = declared(&broker).await;
    let jobs: Vec<_> = (0..5).map(|number| job(&queue, "a", number)).collect();
    bury(&broker, &queue, &jobs, "it broke").await;

    let dry = json(
        &broker,
        &["dead", "replay", &queue.name, "--dry-run", "--limit", "3"],
    )
    .await;

    assert_eq!(
        (&dry[0]["replayed"], &dry[0]["kept"]),
        (&3.into(), &2.into())
    );
    ready(&broker, &format!("{}.dead", queue.name), 5).await;
    assert_eq!(broker.ready(&queue.name).await, Some(0));
}

pub async fn a_rate_and_a_limit_are_kept(broker: Broker) {
    let queue = declared(&broker).await;
    let jobs: Vec<_> = (0..9).map(|number| job(&queue, "a", number)).collect();
    bury(&broker, &queue, &jobs, "it broke").await;
    let began = Instant::now();

    let replay = [
        "dead",
        "replay",
        &queue.name,
        "--rate",
        "10",
        "--limit",
        "6",
    ];
    json(&broker, &replay).await;

    assert!(began.elapsed() >= Duration::from_millis(500));
    ready(&broker, &format!("{}.dead", queue.name), 3).await;
    let order = drained(&broker, &queue.name).await;
    assert!(order.into_iter().map(|(_, number)| number).eq(0..6));
}

pub async fn a_body_that_is_no_job_stays(broker: Broker) {
    let queue = declared(&broker).await;
    let dead = format!("{}.dead", queue.name);
    broker
        .publish(&dead, b"no job", BasicProperties::default())
        .await;
    bury(&broker, &queue, &[job(&queue, "a", 1)], "it broke").await;

    let done = json(&broker, &["dead", "replay", &queue.name]).await;

    assert_eq!(
        (&done[0]["replayed"], &done[0]["kept"]),
        (&1.into(), &1.into())
    );
    ready(&broker, &dead, 1).await;
    assert_eq!(broker.take(&dead).await.unwrap().body, b"no job");
}

pub async fn a_job_of_a_missing_queue_stays_and_is_told(broker: Broker) {
    let queue = declared(&broker).await;
    let mut lost = job(&queue, "a", 1);
    lost.queue = "test.no-such-queue".into();
    bury(&broker, &queue, &[lost, job(&queue, "a", 2)], "it broke").await;

    let output = run(&broker, &["dead", "replay", &queue.name]).await;

    assert_eq!(output.status.code(), Some(5));
    assert!(
        text(&output.stderr).contains("test.no-such-queue"),
        "{output:?}"
    );
    ready(&broker, &format!("{}.dead", queue.name), 1).await;
    assert_eq!(drained(&broker, &queue.name).await, [("a".into(), 2)]);
}

pub async fn a_replay_killed_midway_loses_nothing(broker: Broker) {
    let queue = declared(&broker).await;
    let dead = format!("{}.dead", queue.name);
    let total = if is_long() { 20_000 } else { 2_000 };
    let types = ["meant", "other"];
    let jobs: Vec<_> = (0..total)
        .map(|it| job(&queue, types[it as usize % 2], it))
        .collect();
    bury(&broker, &queue, &jobs, "it broke").await;
    ready(&broker, &dead, total as u32).await;
    let replay = ["dead", "replay", &queue.name, "--type", "meant"];

    // Slow enough to be caught in the act.
    let slowly = [&replay[..], &["--rate", "2000"]].concat();
    let mut tool = command(&broker, &slowly)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("some replayed jobs", async || {
        broker.ready(&queue.name).await > Some(50)
    })
    .await;
    tool.kill().unwrap();
    assert!(!tool.wait().unwrap().success());
    let replayed = broker.ready(&queue.name).await.unwrap();
    assert!(u64::from(replayed) < total / 2, "it was not killed midway");
    // The broker has noticed when all that is unsettled is ready again.
    until("what the tool had in hand", async || {
        let left = broker.ready(&dead).await.unwrap() + broker.ready(&queue.name).await.unwrap();
        u64::from(left) >= total
    })
    .await;
    json(&broker, &replay).await;

    ready(&broker, &dead, (total / 2) as u32).await;
    let others = drained(&broker, &dead).await;
    assert!(
        others
            .into_iter()
            .eq((0..total / 2).map(|it| ("other".into(), 2 * it + 1)))
    );
    let jobs = drained(&broker, &queue.name).await;
    let repeats = jobs.len() as u64 - total / 2;
    let meant: HashSet<_> = jobs.into_iter().collect();
    assert!((0..total / 2).all(|it| meant.contains(&("meant".into(), 2 * it))));
    assert!(repeats <= 64, "{repeats} repeats");
}
