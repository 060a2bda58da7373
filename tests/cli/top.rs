//! `queuey top`, on a terminal.

use std::time::Duration;

use queuey_rabbitmq::{DeadLetterCause, Failure};

use crate::{
    relay::{Relay, Way},
    support::{Broker, pause},
    terminal::Terminal,
    tool::{bury, declared, job, printed, ready, run, text},
};

/// Whether a line of `screen` has all of `words`, in this order.
fn has_line(screen: &str, words: &[&str]) -> bool {
    screen.lines().any(|line| {
        let mut said = line.split_whitespace();
        words.iter().all(|word| said.any(|it| it == *word))
    })
}

pub async fn counts_change_as_jobs_come_and_die(broker: Broker) {
    let queue = declared(&broker).await;
    let name = &queue.name;
    let mut top = Terminal::run(&broker, &["top", name, "--interval", "200ms"]);
    top.until("an empty queue", |screen| {
        screen.contains("connected") && has_line(screen, &[name, "0", "0", "0", "?"])
    })
    .await;
    assert!(!top.text().contains("guest:"), "{}", top.text());

    for number in ["1", "2", "3"] {
        printed(&broker, &["enqueue", name, "a", number]).await;
    }
    bury(&broker, &queue, &[job(&queue, "a", 1)], "no").await;

    top.until("three jobs and a dead one", |screen| {
        has_line(screen, &[name, "3", "1", "0", "?"]) && has_line(screen, &["total", "3", "1"])
    })
    .await;
    top.shows(&["█", "+"]).await;
    assert!(top.has_color());
    top.press("q");
    top.ends().await;
}

pub async fn a_dead_job_is_told_and_replayed(broker: Broker) {
    let queue = declared(&broker).await;
    let (name, dead) = (&queue.name, format!("{}.dead", queue.name));
    let mut failure = Failure::new(4, "no such host: mail.example");
    failure.cause = Some(DeadLetterCause::Exhausted);
    let mut first = job(&queue, "welcome", 1);
    first.attempt = 4;
    let second = job(&queue, "goodbye", 2);
    let id = first.job_id.to_string();
    bury(&broker, &queue, &[first.with_failure(&failure)], "given up").await;
    bury(&broker, &queue, &[second], "it broke").await;
    ready(&broker, &dead, 2).await;
    let mut top = Terminal::run(&broker, &["top", name]);
    top.shows(&[name, "connected"]).await;

    top.press("\r");
    top.until("the dead letters", |screen| {
        has_line(screen, &["welcome", "4", "exhausted", "given", "up"])
            && has_line(screen, &["goodbye", "1", "it", "broke"])
            && screen.contains("2 of 2")
    })
    .await;
    ready(&broker, &dead, 2).await;
    top.press("\r");
    top.shows(&[&id, "no such host: mail.example", "payload"])
        .await;

    top.press("r");
    top.shows(&[&format!("Replay? y/n  {id}")]).await;
    top.press("n");
    top.shows(&["not replayed"]).await;
    ready(&broker, &dead, 2).await;

    top.press("r");
    top.shows(&["y/n"]).await;
    top.press("y");
    top.shows(&[&format!("replayed {id}")]).await;
    ready(&broker, &dead, 1).await;
    let message = broker.take(name).await.unwrap();
    assert_eq!(message.envelope().job_id.to_string(), id);
    assert_eq!(message.envelope().attempt, 1);

    top.press("q");
    top.until("what is left", |screen| {
        screen.contains("1 of 1") && !screen.contains("welcome") && screen.contains("goodbye")
    })
    .await;
    top.press("qq");
    top.ends().await;
}

pub async fn no_terminal_is_too_small(broker: Broker) {
    let queue = declared(&broker).await;
    bury(
        &broker,
        &queue,
        &[job(&queue, "größe", 1)],
        "Schlüssel 鍵 fehlt",
    )
    .await;
    let mut top = Terminal::run(
        &broker,
        &["top", &queue.name, "没有", "--interval", "200ms"],
    );
    top.shows(&["connected", "there is no such queue"]).await;

    for (keys, view) in [
        ("", "没有: there is no such queue"),
        ("\r", "größe"),
        ("\r", "payload"),
        ("?", "any key goes back"),
        ("xqq", "没有: there is no such queue"),
    ] {
        top.press(keys);
        top.shows(&[view]).await;
        for (rows, columns) in [(5, 20), (1, 1), (2, 200), (60, 3), (5, 20)] {
            top.resize(rows, columns);
            pause(Duration::from_millis(50)).await;
        }
        top.shows(&["connected"]).await;
        top.resize(30, 130);
    }
    top.resize(5, 20);
    top.shows(&["QUEUE", "READY"]).await;
    top.press("\u{1b}");
    top.ends().await;
}

pub async fn control_c_and_sigterm_restore_the_terminal(broker: Broker) {
    let queue = declared(&broker).await;
    let mut pressed = Terminal::run(&broker, &["top", &queue.name]);
    let mut told = Terminal::run(&broker, &["top", &queue.name]);
    pressed.shows(&[&queue.name, "connected"]).await;
    told.shows(&[&queue.name, "connected"]).await;

    pressed.press("\u{3}");
    told.signal("TERM");

    pressed.ends().await;
    told.ends().await;
}

pub async fn a_lost_connection_comes_back(broker: Broker) {
    let queue = declared(&broker).await;
    let relay = Relay::to(&broker.url);
    let arguments = ["top", &queue.name, "--interval", "200ms"];
    let mut top = Terminal::with(&relay.url, &arguments, &[]);
    top.shows(&[&queue.name, "connected"]).await;

    relay.refuse(true);
    relay.cut();
    top.shows(&["connection lost", &queue.name]).await;
    printed(&broker, &["enqueue", &queue.name, "a", "1"]).await;
    relay.refuse(false);

    top.until("the connection, and the job", |screen| {
        screen.contains("connected") && has_line(screen, &[&queue.name, "1", "0"])
    })
    .await;
    top.press("q");
    top.ends().await;
}

pub async fn a_silent_broker_does_not_hold_the_screen(broker: Broker) {
    let queue = declared(&broker).await;
    let relay = Relay::to(&broker.url);
    let arguments = ["top", &queue.name, "--interval", "200ms"];
    let mut top = Terminal::with(&relay.url, &arguments, &[]);
    top.shows(&[&queue.name, "connected"]).await;

    relay.fall_silent(&Way::BOTH);

    top.shows(&["no answer for"]).await;
    top.press("\r");
    top.shows(&["Reading the dead letters"]).await;
    top.press("?");
    top.shows(&["any key goes back"]).await;
    top.press("qqq");
    top.ends().await;
}

pub async fn a_replay_without_an_answer_is_not_called_off(broker: Broker) {
    let queue = declared(&broker).await;
    bury(&broker, &queue, &[job(&queue, "welcome", 1)], "no").await;
    let relay = Relay::to(&broker.url);
    let mut top = Terminal::with(&relay.url, &["top", &queue.name], &[]);
    top.shows(&[&queue.name, "connected"]).await;
    top.press("\r");
    top.shows(&["1 of 1"]).await;

    relay.swallow_confirms(true);
    top.press("ry");
    ready(&broker, &queue.name, 1).await;
    relay.refuse(true);
    relay.cut();

    top.shows(&["perhaps replayed, look again"]).await;
    top.press("qq");
    top.ends().await;
}

pub async fn colours_can_be_refused(broker: Broker) {
    let queue = declared(&broker).await;
    bury(&broker, &queue, &[job(&queue, "a", 1)], "no").await;
    let environment = [("NO_COLOR", "1")];
    let mut top = Terminal::with(&broker.url, &["top", &queue.name], &environment);

    top.until("the dead job", |screen| {
        has_line(screen, &[&queue.name, "0", "1"])
    })
    .await;

    assert!(!top.has_color());
    top.press("q");
    top.ends().await;
}

pub async fn a_pipe_is_told_of_status(broker: Broker) {
    let output = run(&broker, &["top", "q"]).await;

    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("queuey status --json"), "{said}");
}
