//! What `queuey doctor` says of policies, and of hold queues that are not ours.

use std::time::Duration;

use queuey_rabbitmq::{Backend, QueueKind, lapin::types::AMQPValue};

use crate::{
    doctor::Found,
    management::{enqueue, finally},
    support::{Broker, version},
    tool::{bury, declared, drained, job, ready},
};

/// Whether a policy may have a timeout for acks.
pub fn since_3_12() -> bool {
    version().is_none_or(|version| version >= (3, 12))
}

/// Whether a policy was found to do this.
fn said(found: &Found, severity: &str, subject: &str, words: &str) -> bool {
    let mut all = found.0.iter().filter(|it| it["check"] == "policy");
    all.any(|it| {
        let problem = it["problem"].as_str().unwrap();
        it["severity"] == severity && it["subject"] == subject && problem.contains(words)
    })
}

pub async fn policies_that_bite_are_told(broker: Broker) {
    let queue = declared(&broker).await;
    let name = &queue.name;
    let dead = format!("{name}.dead");
    let definition = "{\"message-ttl\":60000,\"max-length\":5,\"dead-letter-exchange\":\"lost\"}";
    broker.policy(name, definition);
    let pattern = format!("^{}$", dead.replace('.', "[.]"));
    let operators = [
        "set_operator_policy",
        "--apply-to",
        "queues",
        &dead,
        &pattern,
    ];
    broker.ctl(
        &[
            &operators[..],
            &["{\"expires\":600000,\"message-ttl\":60000}"],
        ]
        .concat(),
    );
    broker.ctl_later(&["clear_operator_policy", &dead]);

    let found = finally(&broker, &[name], |found| {
        said(found, "warning", name, "`message-ttl` to 60000")
            && said(found, "error", name, "`max-length` to 5")
            && said(found, "note", name, "`dead-letter-exchange` to \"lost\"")
            && said(found, "error", &dead, "`expires` to 600000")
            && said(found, "note", &dead, "`message-ttl` to 60000")
    })
    .await;

    assert_eq!(found.1, 1);
    assert!(said(
        &found,
        "error",
        &dead,
        &format!("operator policy `{dead}` sets")
    ));
}

pub async fn what_a_policy_means_depends_on_the_version(broker: Broker) {
    let queue = declared(&broker).await;
    let name = &queue.name;
    match since_3_12() {
        true => broker.policy(name, "{\"consumer-timeout\":60000,\"max-length\":5}"),
        false => broker.policy(name, "{\"ha-mode\":\"all\",\"max-length\":5}"),
    }

    let found = finally(&broker, &[name], |found| {
        said(found, "error", name, "`max-length`")
    })
    .await;

    let (timeout, mirrors) = (
        said(&found, "note", name, "`consumer-timeout`"),
        said(&found, "note", name, "`ha-mode`"),
    );
    match version() {
        Some(version) if version < (3, 12) => assert!(mirrors && !timeout, "{:?}", found.0),
        Some(version) if version < (4, 3) => assert!(timeout, "{:?}", found.0),
        // It waits for ever.
        _ => assert!(!timeout, "{:?}", found.0),
    }
}

pub async fn policies_of_quorum_queues_are_told(broker: Broker) {
    let queue = broker.queue().kind(QueueKind::Quorum);
    let (name, dead) = (&queue.name, format!("{}.dead", queue.name));
    let backend = broker.backend().await;
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    broker.policy(
        name,
        "{\"delivery-limit\":5,\"max-length\":9,\"message-ttl\":600000}",
    );
    broker.policy(&dead, "{\"delivery-limit\":5}");
    // Nobody waits there, nor for so many.
    let ladder = "queuey.ladder.27";
    broker.policy(ladder, "{\"max-length\":1000000}");

    let found = finally(&broker, &[name, "--quorum"], |found| {
        said(found, "warning", name, "`delivery-limit`")
            && said(found, "warning", &dead, "`delivery-limit`")
            && said(found, "warning", ladder, "`max-length`")
    })
    .await;
    let nameless = finally(&broker, &[], |_| true).await;

    assert!(said(&found, "warning", name, "enqueues fail"));
    assert!(said(&found, "warning", name, "in time is dead"));
    assert_eq!(found.problem("error", "kind", name), None);
    // Its kind is known.
    assert_eq!(nameless.problem("error", "kind", name), None);
    assert!(said(&nameless, "warning", name, "enqueues fail"));
}

pub async fn a_foreign_hold_queue_is_told(broker: Broker) {
    let queue = declared(&broker).await;
    let (foreign, short) = (
        format!("{}.deferred.9000", queue.name),
        format!("{}.deferred.60000", queue.name),
    );
    broker
        .declare(&foreign, &[("x-message-ttl", AMQPValue::LongInt(9000))])
        .await;
    broker.remove_later(&foreign);
    enqueue(&broker, &queue, Some(Duration::from_secs(60))).await;
    broker.remove_later(&short);
    broker.policy(&short, "{\"message-ttl\":1000}");

    let found = finally(&broker, &[&queue.name], |found| {
        found.problem("error", "hold-arguments", &foreign).is_some()
            && found.problem("error", "policy", &short).is_some()
    })
    .await;

    assert!(
        found
            .has("error", "policy", &short)
            .contains("1m come early")
    );
    assert_eq!(found.problem("error", "hold-arguments", &short), None);
}

pub async fn a_policy_bounds_the_dead_letters(broker: Broker) {
    let queue = declared(&broker).await;
    let dead = format!("{}.dead", queue.name);
    broker.policy(&dead, "{\"message-ttl\":604800000,\"max-length\":2}");
    finally(&broker, &[&queue.name], |found| {
        said(
            found,
            "note",
            &dead,
            "dead jobs are deleted after that time",
        ) && said(found, "note", &dead, "each dead job drops the oldest")
    })
    .await;

    let jobs: Vec<_> = (0..5).map(|number| job(&queue, "a", number)).collect();
    bury(&broker, &queue, &jobs, "it broke").await;

    ready(&broker, &dead, 2).await;
    let left = drained(&broker, &dead).await;
    assert_eq!(left, [("a".into(), 3), ("a".into(), 4)]);
    // As workers and producers do.
    let backend = broker.backend().await;
    backend.declare(&[queue]).await.unwrap();
}
