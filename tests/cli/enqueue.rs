//! `queuey enqueue`, `peek` and `move`.

use std::{
    io::Write,
    process::Stdio,
    time::{Duration, Instant},
};

use queuey_rabbitmq::Envelope;

use crate::{
    support::Broker,
    tool::{command, declared, drained, job, json, printed, ready, run, text},
};

pub async fn a_job_has_the_options_of_the_command(broker: Broker) {
    let queue = declared(&broker).await;
    let id = "6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab";
    let options = [
        "--priority",
        "3",
        "--correlation-id",
        "order-7",
        "--job-id",
        id,
    ];

    let enqueue = ["enqueue", &queue.name, "welcome", r#"{"user": 7}"#];
    let answer = printed(&broker, &[&enqueue[..], &options].concat()).await;

    assert_eq!(answer, format!("{id}\n"));
    let message = broker.take(&queue.name).await.unwrap();
    let job = message.envelope();
    assert_eq!(
        (job.job_type.as_str(), job.payload.get()),
        ("welcome", r#"{"user": 7}"#)
    );
    assert_eq!((job.priority, job.attempt, job.queue), (3, 1, queue.name));
    assert_eq!(job.correlation_id.as_deref(), Some("order-7"));
    assert_eq!(job.job_id.to_string(), id);
}

pub async fn a_delayed_job_comes_later(broker: Broker) {
    let queue = declared(&broker).await;
    let began = Instant::now();

    printed(
        &broker,
        &["enqueue", &queue.name, "welcome", "1", "--delay", "1s"],
    )
    .await;

    assert_eq!(
        json(&broker, &["status", &queue.name, "--hold", "1s"])
            .await
            .len(),
        1
    );
    ready(&broker, &queue.name, 1).await;
    assert!(began.elapsed() >= Duration::from_secs(1));
}

pub async fn many_lines_are_enqueued_and_bad_ones_are_told(broker: Broker) {
    let queue = declared(&broker).await;
    let mut input = String::new();
    for number in 0..3000 {
        input += &match number {
            41 => "{\"payload\":\n".to_owned(),
            _ => format!("{{\"payload\":{number},\"job_type\":\"b\"}}\n"),
        };
    }
    input += "{\"payload\":1}\n";

    let arguments = ["enqueue", &queue.name, "--jsonl", "-", "--json"];
    let mut tool = command(&broker, &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = tool.stdin.take().unwrap();
    let output = blocking::unblock(move || {
        pipe.write_all(input.as_bytes()).unwrap();
        drop(pipe);
        tool.wait_with_output().unwrap()
    })
    .await;

    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&counts["enqueued"], &counts["failed"]),
        (&2999.into(), &2.into())
    );
    assert_eq!(counts["failed_lines"], serde_json::json!([42, 3001]));
    assert!(text(&output.stderr).contains("line 42: "), "{output:?}");
    ready(&broker, &queue.name, 2999).await;
    let numbers = drained(&broker, &queue.name)
        .await
        .into_iter()
        .map(|(_, number)| number);
    assert!(numbers.eq((0..3000).filter(|&number| number != 41)));
}

pub async fn a_missing_queue_is_an_exit_status(broker: Broker) {
    let queue = broker.name();

    for arguments in [
        &["enqueue", &queue, "welcome", "1"][..],
        &["enqueue", &queue, "welcome", "1", "--delay", "1s"],
        &["peek", &queue],
        &["move", &queue, &queue.replace("test", "other")],
        &["dead", "list", &queue],
    ] {
        let output = run(&broker, arguments).await;
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
        assert!(broker.ready(&queue).await.is_none());
    }
}

pub async fn a_peek_shows_the_next_and_takes_nothing(broker: Broker) {
    let queue = declared(&broker).await;
    for number in 0..20 {
        let number = number.to_string();
        printed(&broker, &["enqueue", &queue.name, "a", &number]).await;
    }

    let lines = json(&broker, &["peek", &queue.name, "--limit", "4"]).await;

    let numbers = lines.iter().map(|line| line["job"]["payload"].as_u64());
    assert!(numbers.eq((0..4).map(Some)));
    ready(&broker, &queue.name, 20).await;
    let left = drained(&broker, &queue.name).await;
    assert!(left.into_iter().map(|(_, number)| number).eq(0..20));
}

pub async fn what_is_moved_names_its_new_queue(broker: Broker) {
    let (from, to) = (declared(&broker).await, declared(&broker).await);
    for job in [job(&from, "a", 1), job(&from, "b", 2)] {
        broker
            .publish(&from.name, &job.to_bytes(), Default::default())
            .await;
    }
    broker
        .publish(&from.name, b"no job", Default::default())
        .await;

    let some = ["move", &from.name, &to.name, "--type", "b"];
    let moved = json(&broker, &some).await;
    assert_eq!(
        (&moved[0]["moved"], &moved[0]["kept"]),
        (&1.into(), &2.into())
    );
    json(&broker, &["move", &from.name, &to.name]).await;

    assert_eq!(broker.ready(&from.name).await, Some(0));
    let first: Envelope = broker.take(&to.name).await.unwrap().envelope();
    assert_eq!(
        (first.queue, first.job_type.as_str()),
        (to.name.clone(), "b")
    );
    assert_eq!(
        broker.take(&to.name).await.unwrap().envelope().job_type,
        "a"
    );
    assert_eq!(broker.take(&to.name).await.unwrap().body, b"no job");
}
