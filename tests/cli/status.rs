//! `queuey status`, and what needs no broker.

use serde_json::{Value, json};

use crate::{
    support::Broker,
    tool::{self, bury, command, declared, job, printed, ready, run, text},
};

pub async fn counts_are_shown(broker: Broker) {
    let queue = declared(&broker).await;
    bury(
        &broker,
        &queue,
        &[job(&queue, "a", 1), job(&queue, "a", 2)],
        "no",
    )
    .await;
    ready(&broker, &format!("{}.dead", queue.name), 2).await;

    let lines = tool::json(&broker, &["status", &queue.name]).await;
    let table = printed(&broker, &["status", &queue.name, "--hold", "20s"]).await;

    let expected = json!({
        "queue": queue.name, "ready": 0, "consumers": 0, "dead": 2, "waiting": null,
        "due_within_ms": null, "unacked": null, "publish_per_second": null,
        "deliver_per_second": null, "ack_per_second": null,
    });
    assert_eq!(lines, [expected]);
    assert_eq!(table, format!("{}\t0\t0\t2\t0\n", queue.name));
}

pub async fn a_missing_queue_is_named(broker: Broker) {
    let queue = declared(&broker).await;

    let output = run(&broker, &["status", &queue.name, "test.no-such-queue"]).await;

    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).starts_with(&queue.name), "{output:?}");
    assert!(
        text(&output.stderr).contains("`test.no-such-queue`"),
        "{output:?}"
    );
}

pub async fn a_broker_that_is_away_is_an_exit_status(broker: Broker) {
    let output = run(&broker, &["status", "q", "--url", "amqp://127.0.0.1:1"]).await;
    let usage = run(&broker, &["status", "--hold", "soon"]).await;
    let nameless = run(&broker, &["status"]).await;

    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("127.0.0.1:1"), "{output:?}");
    assert_eq!(usage.status.code(), Some(2));
    assert_eq!(nameless.status.code(), Some(2));
}

pub async fn a_suffix_comes_from_the_environment(broker: Broker) {
    let queue = declared(&broker).await;
    let own = format!("{}.failed", queue.name);
    broker.remove_later(&own);
    broker.declare(&own, &[]).await;
    broker.publish(&own, b"1", Default::default()).await;

    let mut command = command(&broker, &["status", &queue.name, "--json"]);
    command.env("QUEUEY_DEAD_SUFFIX", ".failed");
    let output = blocking::unblock(move || command.output().unwrap()).await;

    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["dead"], 1, "{output:?}");
}

pub async fn completions_and_manual_need_no_broker(broker: Broker) {
    let completions = printed(
        &broker,
        &["completions", "bash", "--url", "amqp://127.0.0.1:1"],
    )
    .await;
    let page = printed(&broker, &["man", "dead", "replay"]).await;

    assert!(completions.contains("_queuey"));
    assert!(page.contains("keep\\-attempt"), "{page}");
}

pub async fn a_command_tells_its_own_options_first(broker: Broker) {
    let help = printed(&broker, &["dead", "replay", "--help"]).await;

    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    let connection = at("Connection and output:");
    for own in ["--dry-run", "--limit", "--keep-attempt"] {
        assert!(at(own) < connection, "{own}: {help}");
    }
    for shared in ["--url", "--json", "--tls-ca", "--dead-suffix"] {
        assert!(
            at(&format!("\n      {shared}")) > connection,
            "{shared}: {help}"
        );
    }
}
