//! `queuey run` is told to stop.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    runner::{Runner, enqueue, left, lives, until},
    support::Broker,
    tool::declared,
};

pub async fn a_signal_lets_a_running_program_end(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo x >>started; while [ ! -e go ]; do sleep 0.1; done; echo x >ended";
    let (mut runner, folder) = Runner::start(&broker, &queue, &[], script);
    for _ in 0..2 {
        enqueue(&broker, &queue, "a", "1").await;
    }
    folder.has("started").await;

    runner.signal(Signal::TERM);
    until("the order", async || {
        runner.stderr().contains("told to stop by Term")
    })
    .await;
    fs::write(folder.0.join("go"), "").unwrap();
    let status = runner.ended().await;

    assert!(status.success(), "{}", runner.stderr());
    assert!(!folder.read("ended").is_empty());
    assert_eq!(folder.read("started").lines().count(), 1);
    until("the job", async || {
        left(&broker, &queue).await == (Some(1), Some(0))
    })
    .await;
}

pub async fn a_program_is_told_to_end_after_the_grace(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "trap 'echo x >told; exit 0' TERM; echo x >started; while :; do sleep 0.1; done";
    let (runner, folder) = Runner::start(&broker, &queue, &["--grace", "1s"], script);
    enqueue(&broker, &queue, "a", "1").await;
    folder.has("started").await;
    let before = Instant::now();

    runner.stop().await;

    assert!(before.elapsed() >= Duration::from_secs(1));
    assert!(!folder.read("told").is_empty());
    assert_eq!(left(&broker, &queue).await, (Some(0), Some(0)));
}

pub async fn a_program_told_to_end_gives_its_job_back(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo x >started; exec sleep 1000";
    let (runner, folder) = Runner::start(&broker, &queue, &["--grace", "0s"], script);
    enqueue(&broker, &queue, "a", "1").await;
    folder.has("started").await;

    runner.stop().await;

    until("the job", async || {
        broker.ready(&queue.name).await == Some(1)
    })
    .await;
    assert_eq!(
        broker.take(&queue.name).await.unwrap().envelope().attempt,
        1
    );
}

/// A program that does not end when it is told, and whose job is back with its attempt.
async fn given_back(broker: &Broker, options: &[&str], signals: usize) {
    let queue = declared(broker).await;
    let script = "trap '' TERM; echo $$ >started; while :; do sleep 0.1; done";
    let (mut runner, folder) = Runner::start(broker, &queue, options, script);
    enqueue(broker, &queue, "a", "1").await;
    folder.has("started").await;

    for number in 1..=signals {
        runner.signal(Signal::TERM);
        until("the order", async || {
            runner.stderr().matches("told to stop by Term").count() == number
        })
        .await;
    }
    let status = runner.ended().await;

    assert!(status.success(), "{}", runner.stderr());
    until("the job", async || {
        left(broker, &queue).await == (Some(1), Some(0))
    })
    .await;
    let job = broker.take(&queue.name).await.unwrap();
    assert!(job.redelivered);
    assert_eq!(job.envelope().attempt, 1);
    let program = folder.process("started");
    until("the end of the program", async || !lives(program)).await;
}

pub async fn a_second_signal_gives_the_job_back(broker: Broker) {
    given_back(&broker, &[], 2).await;
}

pub async fn the_deadline_gives_the_job_back(broker: Broker) {
    given_back(&broker, &["--grace", "0s", "--deadline", "1s"], 1).await;
}
