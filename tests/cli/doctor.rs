//! `queuey doctor` over AMQP alone: each finding is made by what it is about.

use queuey_rabbitmq::{
    Backend, QueueKind, Uuid,
    lapin::types::{AMQPValue, FieldTable},
    topology,
};
use serde_json::Value;
use url::Url;

use crate::{
    support::{Broker, version},
    tool::{bury, declared, job, ready, run, text},
};

/// What the doctor found: check, severity, subject and problem of each; and its exit status.
pub struct Found(pub Vec<Value>, pub i32);

impl Found {
    /// The problem that was told as this check about `subject`, with this severity.
    pub fn problem(&self, severity: &str, check: &str, subject: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|it| {
            it["check"] == check && it["subject"] == subject && it["severity"] == severity
        })?["problem"]
            .as_str()
    }

    #[track_caller]
    pub fn has(&self, severity: &str, check: &str, subject: &str) -> &str {
        let problem = self.problem(severity, check, subject);
        problem.unwrap_or_else(|| panic!("no {severity} `{check}` of `{subject}`: {:?}", self.0))
    }
}

pub async fn doctor(broker: &Broker, arguments: &[&str]) -> Found {
    let arguments = [&["doctor", "--json"], arguments].concat();
    let output = run(broker, &arguments).await;
    let status = output.status.code().unwrap();
    assert!(status < 2, "{arguments:?}: {output:?}");
    let lines = text(&output.stdout);
    let findings = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    Found(findings.collect(), status)
}

pub async fn a_healthy_queue_has_no_finding(broker: Broker) {
    let queue = declared(&broker).await;
    let backend = broker.backend().await;
    let _worker = backend.consume(&queue).await.unwrap();

    let output = run(&broker, &["doctor", &queue.name]).await;

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    let unknown = text(&output.stderr);
    assert_eq!(
        unknown.matches("needs --management-url").count(),
        1,
        "{unknown}"
    );
}

pub async fn every_foreign_argument_is_told(broker: Broker) {
    let queue = broker.queue();
    let dead = format!("{}.dead", queue.name);
    let foreign = [
        ("x-max-priority", AMQPValue::LongInt(5)),
        ("x-expires", AMQPValue::LongInt(600_000)),
        ("x-single-active-consumer", AMQPValue::Boolean(true)),
        ("x-overflow", AMQPValue::LongString("reject-publish".into())),
    ];
    broker.declare(&queue.name, &foreign).await;
    broker
        .declare(&dead, &[("x-max-length", AMQPValue::LongInt(9))])
        .await;

    let found = doctor(&broker, &[&queue.name]).await;
    let told = doctor(&broker, &[&queue.name, "--max-priority", "5"]).await;

    assert_eq!(found.1, 1);
    let problem = |name: &str| {
        let names = |it: &&Value| it["problem"].as_str().unwrap().contains(name);
        let mut all = found.0.iter().filter(|it| it["check"] == "arguments");
        all.find(names)
            .unwrap_or_else(|| panic!("{name}: {:?}", found.0))
            .clone()
    };
    for (name, _) in &foreign {
        let problem = problem(name);
        assert_eq!(problem["severity"], "error");
        assert_eq!(problem["subject"], *queue.name);
    }
    assert_eq!(problem("x-max-length")["subject"], *dead);
    let told = told
        .0
        .iter()
        .filter(|it| it["check"] == "arguments")
        .count();
    assert_eq!(told, foreign.len());
    // It is as it was.
    broker
        .try_declare(&queue.name, true, &foreign)
        .await
        .unwrap();
}

pub async fn another_kind_is_told(broker: Broker) {
    let queue = broker.queue().kind(QueueKind::Quorum);
    let ours = topology::main_queue(&queue, Some(&format!("{}.dead", queue.name)));
    broker
        .declare(&queue.name, &arguments(&ours.arguments))
        .await;

    let as_classic = doctor(&broker, &[&queue.name]).await;
    let as_quorum = doctor(&broker, &[&queue.name, "--quorum"]).await;

    assert!(
        as_classic
            .has("error", "kind", &queue.name)
            .contains("quorum")
    );
    assert_eq!(as_quorum.problem("error", "kind", &queue.name), None);
    let unsupported = as_quorum.problem("error", "quorum-unsupported", "broker");
    if let Some(version) = version() {
        assert_eq!(unsupported.is_some(), version < (4, 0), "{unsupported:?}");
    }
}

fn arguments(table: &FieldTable) -> Vec<(&str, AMQPValue)> {
    let fields = table.inner().iter();
    fields
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect()
}

pub async fn a_queue_that_is_missing_stays_missing(broker: Broker) {
    let queue = broker.name();

    let found = doctor(&broker, &[&queue]).await;
    let quorum = doctor(&broker, &[&queue, "--quorum"]).await;

    for found in [found, quorum] {
        assert_eq!(found.1, 1);
        found.has("error", "queue-missing", &queue);
    }
    for name in [
        &queue,
        &format!("{queue}.dead"),
        &format!("{queue}.deferred.1000"),
    ] {
        assert_eq!(broker.ready(name).await, None, "{name}");
    }
}

pub async fn what_lies_on_a_queue_is_told(broker: Broker) {
    let queue = declared(&broker).await;
    let (name, dead) = (&queue.name, format!("{}.dead", queue.name));
    bury(&broker, &queue, &[job(&queue, "a", 1)], "no").await;
    ready(&broker, &dead, 1).await;

    let idle = doctor(&broker, &[name]).await;
    let body = job(&queue, "a", 2).to_bytes();
    broker.publish(name, &body, Default::default()).await;
    broker.delete(&dead).await;
    let waiting = doctor(&broker, &[name]).await;

    idle.has("note", "no-consumer", name);
    assert!(idle.has("warning", "dead-letters", name).contains("1 dead"));
    let problem = waiting.has("warning", "no-consumer", name);
    assert!(problem.contains("1 jobs"), "{problem}");
    waiting.has("warning", "dead-queue-missing", name);
    assert_eq!(waiting.1, 1);
    assert!(!broker.take(name).await.unwrap().redelivered);
}

pub async fn odd_terms_of_the_connection_are_told(broker: Broker) {
    let url = format!("{}?heartbeat=2&frame_max=8192", broker.url);

    let odd = doctor(&broker, &["--url", &url]).await;
    let usual = doctor(&broker, &[]).await;

    assert!(odd.has("warning", "heartbeat", "broker").contains("2 s"));
    assert!(odd.has("warning", "frame-max", "broker").contains("8192"));
    assert_eq!(odd.1, 1);
    assert!(usual.0.is_empty(), "{:?}", usual.0);
    assert_eq!(usual.1, 0);
}

/// A user with these rights until the test ends, and the address it has.
pub fn user(broker: &Broker, [configure, write, read]: [&str; 3]) -> (String, String) {
    let name = Uuid::new_v4().simple().to_string();
    broker.ctl(&["add_user", &name, "secret"]);
    broker.ctl_later(&["delete_user", &name]);
    broker.ctl(&["set_permissions", &name, configure, write, read]);
    let mut url = Url::parse(&broker.url).unwrap();
    url.set_username(&name).unwrap();
    url.set_password(Some("secret")).unwrap();
    (name, url.into())
}

pub async fn a_user_without_rights_hears_which(broker: Broker) {
    let queue = declared(&broker).await;
    let name = &queue.name;
    let hold = format!("{name}.deferred.1000");
    let (_, none) = user(&broker, ["^$", "^$", "^$"]);
    let (_, own) = user(
        &broker,
        [&format!("^{name}"), "amq.default", &format!("^{name}")],
    );
    let (_, all) = user(&broker, [".*", ".*", ".*"]);
    let rights = |found: &Found| {
        let rights = found.0.iter().filter(|it| it["check"] == "rights");
        let subject = |it: &Value| it["subject"].as_str().unwrap().to_owned();
        let mut subjects: Vec<_> = rights.map(subject).collect();
        subjects.sort();
        subjects
    };

    let as_none = doctor(&broker, &[name, "--url", &none]).await;
    let as_own = doctor(&broker, &[name, "--url", &own]).await;
    let as_own_quorum = doctor(&broker, &[name, "--url", &own, "--quorum"]).await;
    let as_all = doctor(&broker, &[name, "--url", &all, "--quorum"]).await;

    let dead = &format!("{name}.dead");
    let mut expected = [name, name, dead, &hold, &hold, &"broker".to_owned()];
    expected.sort();
    assert_eq!(rights(&as_none).iter().collect::<Vec<_>>(), expected);
    assert!(rights(&as_own).is_empty(), "{:?}", as_own.0);
    let ladder = "queuey.ladder.0";
    assert_eq!(rights(&as_own_quorum), [ladder, ladder, ladder, name]);
    assert!(rights(&as_all).is_empty(), "{:?}", as_all.0);
}
