//! The bar of long work.

use crate::{
    support::Broker,
    terminal::Terminal,
    tool::{bury, declared, job, run, text},
};

pub async fn a_terminal_shows_how_far_long_work_is(broker: Broker) {
    let queue = declared(&broker).await;
    let jobs: Vec<_> = (0..40).map(|number| job(&queue, "a", number)).collect();
    bury(&broker, &queue, &jobs, "it broke").await;

    let arguments = ["dead", "replay", &queue.name, "--rate", "20"];
    let mut tool = Terminal::run(&broker, &arguments);

    tool.until("the way there", |screen| {
        (2..40).any(|done| screen.contains(&format!("░ {done}/40 ")))
    })
    .await;
    tool.shows(&["replayed 40 dead jobs"]).await;
    tool.ends().await;
    assert!(!tool.text().contains("/40"), "{}", tool.text());
}

pub async fn a_pipe_is_not_told(broker: Broker) {
    let queue = declared(&broker).await;
    let jobs: Vec<_> = (0..40).map(|number| job(&queue, "a", number)).collect();
    bury(&broker, &queue, &jobs, "it broke").await;

    let output = run(&broker, &["dead", "replay", &queue.name, "--rate", "20"]).await;

    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).starts_with("replayed 40 dead jobs"));
}
