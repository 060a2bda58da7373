//! What `queuey status` and `queuey doctor` know from the management API, some seconds late.

use std::time::Duration;

use futures_util::StreamExt;
use queuey_rabbitmq::{Backend, QueueConfig};
use serde_json::Value;
use url::Url;

use crate::{
    doctor::{Found, doctor, user},
    policies,
    support::{Broker, until, within},
    tool::{self, declared, job, printed, run, text},
};

fn api() -> String {
    std::env::var("RABBITMQ_MANAGEMENT_URL").expect("run by tests/with-broker --management")
}

/// What the doctor finds in the end.
pub async fn finally(broker: &Broker, arguments: &[&str], holds: impl Fn(&Found) -> bool) -> Found {
    let api = api();
    let arguments = [arguments, &["--management-url", &api]].concat();
    within("the findings", async {
        loop {
            let found = doctor(broker, &arguments).await;
            if holds(&found) {
                return found;
            }
            // Shown where the test fails.
            println!("so far: {:?}", found.0);
        }
    })
    .await
}

pub async fn enqueue(broker: &Broker, queue: &QueueConfig, delay: Option<Duration>) {
    let backend = broker.backend().await;
    backend.declare(std::slice::from_ref(queue)).await.unwrap();
    backend.publish(&job(queue, "a", 1), delay).await.unwrap();
}

pub async fn a_status_needs_no_names(broker: Broker) {
    let queue = declared(&broker).await;
    let backend = broker.backend().await;
    for delay in [20, 40, 40] {
        enqueue(&broker, &queue, Some(Duration::from_secs(delay))).await;
    }
    for hold in ["20000", "40000"] {
        broker.remove_later(&format!("{}.deferred.{hold}", queue.name));
    }
    let mut jobs = backend.consume(&queue).await.unwrap();
    enqueue(&broker, &queue, None).await;
    let _in_hand = within("a job", jobs.next()).await;

    let api = api();
    let status = async || {
        let lines = tool::json(&broker, &["status", "--management-url", &api]).await;
        let ours = |it: &Value| it["queue"].as_str().unwrap().starts_with(&queue.name);
        lines.into_iter().filter(ours).collect::<Vec<_>>()
    };
    until("what the broker has counted", async || {
        let lines = status().await;
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        line["waiting"] == 3 && line["unacked"] == 1 && line["due_within_ms"] == 20_000
    })
    .await;

    let line = status().await.remove(0);
    assert_eq!((&line["ready"], &line["dead"]), (&0.into(), &0.into()));
    assert!(line["ack_per_second"].is_f64(), "{line}");
    let table = printed(&broker, &["status", &queue.name, "--management-url", &api]).await;
    let start = format!("{}\t0\t1\t0\t3\t<20s\t1\t", queue.name);
    assert!(table.starts_with(&start), "{table}");
}

pub async fn a_healthy_queue_has_no_finding(broker: Broker) {
    let queue = declared(&broker).await;
    let backend = broker.backend().await;
    let _worker = backend.consume(&queue).await.unwrap();
    if policies::since_3_12() {
        broker.policy(&queue.name, "{\"consumer-timeout\":7200000}");
    }

    let api = api();
    let output = run(&broker, &["doctor", &queue.name, "--management-url", &api]).await;

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    let unknown = text(&output.stderr);
    assert!(!unknown.contains("needs --management-url"), "{unknown}");
}

pub async fn a_job_in_hand_for_long_is_told(broker: Broker) {
    let queue = declared(&broker).await;
    let backend = broker.backend().await;
    let mut jobs = backend.consume(&queue).await.unwrap();
    enqueue(&broker, &queue, None).await;
    let in_hand = within("a job", jobs.next()).await;

    let short = ["--in-hand", "1s", queue.name.as_str()];
    let found = finally(&broker, &short, |found| {
        found.problem("warning", "in-hand", &queue.name).is_some()
    })
    .await;
    let patient = finally(&broker, &[&queue.name], |_| true).await;

    assert!(
        found
            .has("warning", "in-hand", &queue.name)
            .contains("1 jobs")
    );
    assert_eq!(patient.problem("warning", "in-hand", &queue.name), None);
    drop(in_hand);
}

pub async fn a_default_queue_type_is_told(broker: Broker) {
    let other = broker.quorum_vhost().await;

    let found = finally(&other, &[], |_| true).await;
    let usual = finally(&broker, &["test.no-such-queue"], |_| true).await;

    let problem = found.has("note", "default-queue-type", "vhost");
    assert!(problem.contains("quorum"), "{problem}");
    assert_eq!(usual.problem("note", "default-queue-type", "vhost"), None);
    other.clean_up().await;
}

pub async fn a_user_who_may_not_ask_is_told(broker: Broker) {
    let queue = declared(&broker).await;
    let (name, url) = user(&broker, [".*", ".*", ".*"]);
    let mut api = Url::parse(&api()).unwrap();
    api.set_username("").unwrap();
    api.set_password(None).unwrap();
    let arguments = [&queue.name, "--url", &url, "--management-url", api.as_str()];

    // As the user of --url.
    let found = doctor(&broker, &arguments).await;
    let status = run(&broker, &[&["status"][..], &arguments].concat()).await;
    let unchecked = run(&broker, &[&["doctor"][..], &arguments].concat()).await;
    broker.ctl(&["set_user_tags", &name, "monitoring"]);
    let monitoring = doctor(&broker, &arguments).await;

    found.has("warning", "management-api", "broker");
    assert_eq!(found.1, 1);
    let unchecked = text(&unchecked.stderr);
    assert!(
        unchecked.contains("policies") && !unchecked.contains("needs --management-url"),
        "{unchecked}"
    );
    assert_eq!(status.status.code(), Some(4), "{status:?}");
    let words = text(&status.stderr);
    assert!(
        words.contains("`monitoring`") && !words.contains("secret"),
        "{words}"
    );
    assert_eq!(
        monitoring.problem("warning", "management-api", "broker"),
        None
    );
}

pub async fn an_alarm_is_told(broker: Broker) {
    let queue = declared(&broker).await;
    let old = broker.ctl(&["eval", "vm_memory_monitor:get_vm_memory_high_watermark()."]);
    broker.ctl_later(&["set_vm_memory_high_watermark", old.trim()]);
    broker.ctl(&["set_vm_memory_high_watermark", "0.000001"]);

    let found = finally(&broker, &[&queue.name], |found| {
        found.0.iter().any(|it| it["check"] == "alarm")
    })
    .await;

    let problem = found.has("error", "blocked", "broker");
    assert!(problem.contains("low on memory"), "{problem}");
    let alarm = found.0.iter().find(|it| it["check"] == "alarm").unwrap();
    assert!(
        alarm["problem"].as_str().unwrap().contains("memory"),
        "{alarm}"
    );
    assert_eq!(found.1, 1);
}
