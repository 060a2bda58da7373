//! Running the program, and dead jobs for it to find.

use std::process::{Command, Output, Stdio};

use futures_util::{StreamExt, stream};
use queuey_rabbitmq::{
    Backend, Envelope, QueueConfig, codec,
    lapin::{options::*, types::FieldTable},
};
use serde_json::Value;

use crate::support::{Broker, until};

/// The program with these arguments, on the broker of the test.
pub fn command(broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuey"));
    command
        .args(arguments)
        .env("AMQP_URL", &broker.url)
        .env_remove("QUEUEY_MANAGEMENT_URL")
        .stdin(Stdio::null());
    command
}

/// What the program did.
pub async fn run(broker: &Broker, arguments: &[&str]) -> Output {
    let mut command = command(broker, arguments);
    blocking::unblock(move || command.output().unwrap()).await
}

/// What the program printed, once it has succeeded.
pub async fn printed(broker: &Broker, arguments: &[&str]) -> String {
    let output = run(broker, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines the program printed, as JSON.
pub async fn json(broker: &Broker, arguments: &[&str]) -> Vec<Value> {
    let arguments = [arguments, &["--json"]].concat();
    let text = printed(broker, &arguments).await;
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into()
}

/// A declared queue with its dead-letter queue.
pub async fn declared(broker: &Broker) -> QueueConfig {
    let queue = broker.queue();
    broker
        .backend()
        .await
        .declare(std::slice::from_ref(&queue))
        .await
        .unwrap();
    queue
}

/// A job of this type and number.
pub fn job(queue: &QueueConfig, job_type: &str, number: u64) -> Envelope {
    let payload = serde_json::value::to_raw_value(&number).unwrap();
    Envelope::raw(job_type, &queue.name, payload)
}

/// Puts `jobs` where the dead ones of `queue` are, in this order.
pub async fn bury(broker: &Broker, queue: &QueueConfig, jobs: &[Envelope], reason: &str) {
    let channel = broker.channel().await;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    let dead = format!("{}.dead", queue.name);
    let mut confirms = vec![];
    for job in jobs {
        let properties = codec::dead_properties(job, reason, 4096);
        let options = BasicPublishOptions::default();
        let body = job.to_bytes();
        let published =
            channel.basic_publish("".into(), dead.as_str().into(), options, &body, properties);
        confirms.push(published.await.unwrap());
    }
    let mut confirms = stream::iter(confirms).buffered(64);
    while let Some(confirm) = confirms.next().await {
        assert!(confirm.unwrap().is_ack());
    }
}

/// Takes the numbers of all jobs off `queue`, in its order, with their types.
pub async fn drained(broker: &Broker, queue: &str) -> Vec<(String, u64)> {
    let channel = broker.channel().await;
    let options = BasicConsumeOptions {
        no_ack: true,
        ..BasicConsumeOptions::default()
    };
    let ready = broker.ready(queue).await.unwrap();
    let consume = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default());
    let mut consumer = consume.await.unwrap();
    let mut jobs = vec![];
    for _ in 0..ready {
        let delivery = crate::support::within("a message", consumer.next()).await;
        let job = Envelope::from_bytes(&delivery.unwrap().unwrap().data).unwrap();
        jobs.push((job.job_type, job.payload.get().parse().unwrap()));
    }
    jobs
}

/// Waits until `queue` has so many messages ready.
pub async fn ready(broker: &Broker, queue: &str, number: u32) {
    until("the messages", async || {
        broker.ready(queue).await == Some(number)
    })
    .await;
}
