//! `queuey tail`.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::{
    support::{Broker, until},
    tool::{command, declared, drained, printed, run, text},
};

/// The program, watching.
struct Tail(Child);

impl Tail {
    fn start(broker: &Broker, arguments: &[&str]) -> Self {
        let mut command = command(broker, arguments);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// What it printed until its end, and whether that was a good one.
    async fn ended(mut self) -> (String, bool) {
        let mut printed = String::new();
        blocking::unblock(move || {
            let out = self.0.stdout.as_mut().unwrap();
            out.read_to_string(&mut printed).unwrap();
            let status = self.0.wait().unwrap();
            (printed, status.success())
        })
        .await
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// A broker of the test's own with tracing on.
async fn traced(broker: &Broker) -> (Broker, String) {
    let own = broker.vhost(&[]).await;
    let vhost = own.url.rsplit('/').next().unwrap().to_owned();
    broker.ctl(&["trace_on", "-p", &vhost]);
    broker.ctl_later(&["trace_off", "-p", &vhost]);
    (own, vhost)
}

/// Waits until the program has its copies sent to it.
async fn watching(broker: &Broker, vhost: &str) {
    until("a consumer of the copies", async || {
        let listed = broker.ctl(&["list_consumers", "-p", vhost, "queue_name"]);
        listed.contains("amq.gen")
    })
    .await;
}

pub async fn jobs_pass_by_and_stay(outer: Broker) {
    let (broker, vhost) = traced(&outer).await;
    let queue = declared(&broker).await;
    let arguments = ["tail", &queue.name, "--published", "--json", "--limit", "2"];
    let tail = Tail::start(&broker, &arguments);
    watching(&outer, &vhost).await;

    let other = declared(&broker).await;
    printed(&broker, &["enqueue", &other.name, "a", "1"]).await;
    let id = printed(&broker, &["enqueue", &queue.name, "a", "2"]).await;
    printed(&broker, &["peek", &queue.name]).await;

    let (printed, is_done) = tail.ended().await;
    assert!(is_done);
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [published, delivered] = &lines[..] else {
        panic!("{printed}");
    };
    assert_eq!(published["event"], "published");
    assert_eq!(delivered["event"], "delivered");
    for line in [published, delivered] {
        assert_eq!(line["job"]["job_id"], id.trim());
        assert_eq!(line["job"]["payload"], 2);
        assert_eq!(line["headers"]["x-attempt"], 1);
        assert!(line["bytes"].as_u64().unwrap() > 100);
    }
    assert_eq!(published["redelivered"], Value::Null);
    assert_eq!(delivered["redelivered"], false);
    assert_eq!(drained(&broker, &queue.name).await, [("a".into(), 2)]);
}

pub async fn a_type_is_chosen(outer: Broker) {
    let (broker, vhost) = traced(&outer).await;
    let queue = declared(&broker).await;
    let arguments = ["tail", &queue.name, "--type", "b", "--limit", "1"];
    let tail = Tail::start(&broker, &arguments);
    watching(&outer, &vhost).await;

    printed(&broker, &["enqueue", &queue.name, "a", "1"]).await;
    let id = printed(&broker, &["enqueue", &queue.name, "b", "2"]).await;
    printed(&broker, &["peek", &queue.name]).await;

    let (printed, is_done) = tail.ended().await;
    assert!(is_done);
    let cells: Vec<_> = printed.trim_end().split('\t').collect();
    assert_eq!(cells[1..5], ["delivered", id.trim(), "b", "1"], "{printed}");
}

pub async fn silence_is_explained_and_control_c_ends_it(broker: Broker) {
    let queue = declared(&broker).await;
    let mut tail = Tail::start(&broker, &["tail", &queue.name]);
    let errors = tail.0.stderr.take().unwrap();

    let said = blocking::unblock(move || {
        let mut said = String::new();
        BufReader::new(errors).read_line(&mut said).unwrap();
        said
    })
    .await;

    assert!(said.contains("rabbitmqctl trace_on"), "{said}");
    #[cfg(unix)]
    {
        crate::terminal::send("INT", &tail.0);
        assert_eq!(tail.ended().await, (String::new(), true));
    }
}

pub async fn a_missing_queue_is_not_watched(broker: Broker) {
    let output = run(&broker, &["tail", "test.no-such-queue"]).await;

    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("`test.no-such-queue`"));
}
