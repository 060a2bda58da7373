//! Goal 8: jobs that fail once and come back after a second.

use peers::bench::{Failure, Figures};

use crate::{
    goal::{AtMost, Goal, Unit},
    program::Program::{self, Ours, Queuey},
    relay::Relay,
    series::{Bench, Case},
};

const RETRY: &str = "2,000 jobs fail once, retry after 1 s";

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    let jobs = bench.pick(2000, 2000);
    bench.rounds(&[case(Ours, jobs), case(Queuey, jobs)])?;
    let above = bench.ratio((RETRY, Ours), (RETRY, Queuey), above_the_delay);
    let jobs = bench.pick(500, 2000);
    let (declares, publishes) = counted(bench, Ours, jobs)?;
    counted(bench, Queuey, jobs)?;
    Ok(vec![
        Goal::new(
            8,
            "2,000 retries after 1 s, time above the delay",
            AtMost(0.3),
            Unit::OfQueuey,
            above,
        ),
        Goal::new(
            8,
            "publishes per retry",
            AtMost(1.0),
            Unit::Number,
            publishes,
        ),
        // Shared, so fewer than retries; the worker's own queues are among them.
        Goal::new(8, "declares per retry", AtMost(0.5), Unit::Number, declares),
    ])
}

fn case(program: Program, jobs: u64) -> Case {
    Case::new(RETRY, program, "retry").works(jobs, 16, 10)
}

fn above_the_delay(figures: &Figures) -> f64 {
    figures.seconds - 1.0
}

/// Declares and publishes per retry, through a relay, which takes time of its own.
fn counted(bench: &mut Bench, program: Program, jobs: u64) -> Result<(f64, f64), Failure> {
    let relay = Relay::start(&bench.broker.url)?;
    let queue = bench.broker.queue();
    bench.broker.fill(&queue, jobs, 10)?;
    let ran = bench.run_on(&case(program, jobs), &queue, &relay.url);
    bench.broker.delete(&queue)?;
    ran?;
    let per_retry = |number: u64| number as f64 / jobs as f64;
    let declares = per_retry(relay.counts.declares());
    let publishes = per_retry(relay.counts.publishes());
    let note = format!("{program}: {declares:.4} declares and {publishes:.4} publishes per retry");
    eprintln!("relay    {note}");
    bench.notes.push(note);
    Ok((declares, publishes))
}
