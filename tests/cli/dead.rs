//! `queuey dead list`, `show`, `export` and `purge`.

use std::time::{SystemTime, UNIX_EPOCH};

use queuey_rabbitmq::{DeadLetterCause, Failure, FailureKind, lapin::BasicProperties};

use crate::{
    support::Broker,
    tool::{bury, declared, drained, job, json, printed, ready, run, text},
};

pub async fn a_list_takes_nothing_away_and_keeps_the_order(broker: Broker) {
    let queue = declared(&broker).await;
    let jobs: Vec<_> = (0..1000).map(|number| job(&queue, "a", number)).collect();
    bury(&broker, &queue, &jobs, "it broke").await;
    let dead = format!("{}.dead", queue.name);

    let listed = json(&broker, &["dead", "list", &queue.name]).await;
    let first = printed(&broker, &["dead", "list", &queue.name, "--limit", "2"]).await;

    let numbers = listed.iter().map(|line| line["job"]["payload"].as_u64());
    assert!(numbers.eq((0..1000).map(Some)));
    assert_eq!(first.lines().count(), 2);
    assert!(
        first.contains("\ta\t1\t") && first.contains("\tit broke\n"),
        "{first}"
    );
    ready(&broker, &dead, 1000).await;
    let left = drained(&broker, &dead).await;
    assert!(left.into_iter().map(|(_, number)| number).eq(0..1000));
}

pub async fn filters_choose_by_type_cause_error_age_and_attempt(broker: Broker) {
    let queue = declared(&broker).await;
    let mut old = job(&queue, "old", 1);
    old.enqueued_at_ms -= 7_200_000;
    let mut tried = job(&queue, "tried", 2);
    tried.attempt = 5;
    bury(&broker, &queue, &[old, tried.clone()], "Timed out").await;
    bury(&broker, &queue, &[job(&queue, "other", 3)], "refused").await;
    // Enqueued long ago, and failed just now.
    let mut failed = job(&queue, "failed", 4);
    failed.enqueued_at_ms -= 7_200_000;
    bury(&broker, &queue, &[failed.with_failure(&failure())], "gone").await;

    for (filter, expected) in [
        (&["--type", "old", "--type", "other"][..], &[1, 3][..]),
        (&["--error", "timed OUT"], &[1, 2]),
        (&["--error", "no such host"], &[4]),
        (&["--cause", "fatal"], &[4]),
        (&["--cause", "fatal", "--cause", "expired"], &[4]),
        (&["--cause", "exhausted"], &[]),
        (&["--older-than", "1h"], &[1]),
        (&["--newer-than", "1h"], &[2, 3, 4]),
        (&["--attempt", "2-"], &[2]),
        (&["--id", &tried.job_id.to_string()], &[2]),
        (&["--type", "old", "--error", "refused"], &[]),
    ] {
        let arguments = [&["dead", "list", &queue.name], filter].concat();
        let lines = json(&broker, &arguments).await;
        let numbers: Vec<_> = lines.iter().map(|line| &line["job"]["payload"]).collect();
        assert_eq!(numbers, expected, "{filter:?}");
    }
}

pub async fn one_job_is_shown_whole(broker: Broker) {
    let queue = declared(&broker).await;
    let jobs = [job(&queue, "a", 1), job(&queue, "a", 2)];
    bury(&broker, &queue, &jobs, "it broke").await;
    let id = jobs[1].job_id.to_string();

    let shown = json(&broker, &["dead", "show", &queue.name, &id]).await;
    let other = run(
        &broker,
        &[
            "dead",
            "show",
            &queue.name,
            &queuey_rabbitmq::Uuid::nil().to_string(),
        ],
    )
    .await;

    assert_eq!(shown[0]["job"]["job_id"], id);
    assert_eq!(shown[0]["headers"]["x-attempts"], 1);
    assert_eq!(shown[0]["reason"], "it broke");
    assert_eq!(other.status.code(), Some(1));
}

/// A failure of this moment.
fn failure() -> Failure {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut failure = Failure::new(3, "cannot send");
    failure.chain.push("no such host".into());
    failure.cause = Some(DeadLetterCause::Fatal);
    failure.failed_at_ms = now.as_millis() as u64;
    failure
}

pub async fn a_dead_job_tells_its_story(broker: Broker) {
    let queue = declared(&broker).await;
    let mut told = failure();
    told.error_type = Some("smtp::Error".into());
    told.place = Some("src/mail.rs:7:9".into());
    told.host = "worker-3".into();
    told.pid = 77;
    let mut dead = job(&queue, "welcome", 5).with_failure(&told);
    dead.attempt = 3;
    // Nobody's clock: shown, and no reason to panic.
    dead.enqueued_at_ms = u64::MAX;
    bury(&broker, &queue, &[dead.clone()], "no \x1b[31msuch\nhost").await;
    let show = ["dead", "show", &queue.name, &dead.job_id.to_string()];

    let shown = printed(&broker, &show).await;
    let whole = json(&broker, &show).await;

    for line in [
        "type      welcome",
        "attempt   3; deferrals 0, priority 0",
        "cause     fatal",
        "reason    no  [31msuch host",
        "on        worker-3, process 77",
        "place     src/mail.rs:7:9",
        "error     smtp::Error",
        "          cannot send",
        "because   no such host",
        "payload   5",
    ] {
        assert!(shown.lines().any(|it| it == line), "{line:?}: {shown}");
    }
    told.error_type = None;
    told.kind = FailureKind::Panic;
    let panicked = job(&queue, "welcome", 6).with_failure(&told);
    bury(
        &broker,
        &queue,
        std::slice::from_ref(&panicked),
        "it panicked",
    )
    .await;
    let id = panicked.job_id.to_string();
    let panicked = printed(&broker, &["dead", "show", &queue.name, &id]).await;
    assert!(panicked.contains("\npanic     cannot send\nbecause   no such host\n"));

    assert_eq!(whole[0]["failure"]["place"], "src/mail.rs:7:9");
    assert_eq!(whole[0]["cause"], "fatal");
    assert!(whole[0]["headers"].get("x-failure").is_none());
}

pub async fn an_export_holds_every_body(broker: Broker) {
    let queue = declared(&broker).await;
    let dead = format!("{}.dead", queue.name);
    broker
        .publish(&dead, b"\xffno job", BasicProperties::default())
        .await;
    let kept = job(&queue, "a", 1);
    bury(&broker, &queue, std::slice::from_ref(&kept), "it broke").await;

    let lines = printed(&broker, &["dead", "export", &queue.name]).await;

    let lines: Vec<_> = lines.lines().collect();
    assert!(
        lines[0].contains(r#""body_base64":"/25vIGpvYg==""#),
        "{lines:?}"
    );
    assert!(lines[1].contains(&*text(&kept.to_bytes())), "{lines:?}");
}

pub async fn a_purge_takes_what_matches_alone(broker: Broker) {
    let queue = declared(&broker).await;
    let dead = format!("{}.dead", queue.name);
    let types = ["a", "b"];
    let jobs: Vec<_> = (0..600)
        .map(|it| job(&queue, types[it as usize % 2], it))
        .collect();
    bury(&broker, &queue, &jobs, "it broke").await;

    let purge = ["dead", "purge", &queue.name, "--type", "a"];
    let dry = json(&broker, &[&purge[..], &["--dry-run"]].concat()).await;
    ready(&broker, &dead, 600).await;
    let done = json(&broker, &[&purge[..], &["--yes"]].concat()).await;

    assert_eq!(
        (&dry[0]["purged"], &dry[0]["dry_run"]),
        (&300.into(), &true.into())
    );
    assert_eq!(
        (&done[0]["purged"], &done[0]["kept"]),
        (&300.into(), &300.into())
    );
    ready(&broker, &dead, 300).await;
    let left = drained(&broker, &dead).await;
    assert!(
        left.into_iter()
            .eq((0..300).map(|it| ("b".into(), 2 * it + 1)))
    );
}

pub async fn a_purge_without_yes_is_refused(broker: Broker) {
    let queue = declared(&broker).await;
    bury(&broker, &queue, &[job(&queue, "a", 1)], "it broke").await;

    let output = run(&broker, &["dead", "purge", &queue.name]).await;

    assert_eq!(output.status.code(), Some(2));
    ready(&broker, &format!("{}.dead", queue.name), 1).await;
}
