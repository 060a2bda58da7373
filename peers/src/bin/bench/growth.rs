//! Goal 15: whether a thousand jobs or a million make a difference to the client.

use peers::bench::{Failure, Figures};

use crate::{
    goal::{AtMost, Goal, Unit},
    program::Program::Ours,
    report::count,
    series::{Bench, Case, cpu, rate},
};

const SMALLEST: u64 = 1_000;
/// Memory is compared with this many: fewer do not fill every buffer.
const MEMORY: u64 = 10_000;
const TASKS: u64 = 256;

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    let largest = bench.pick(100_000, 1_000_000).max(MEMORY);
    let mut jobs = SMALLEST;
    while jobs <= largest {
        // What is short varies most.
        let times = if jobs < 100_000 { bench.rounds } else { 1 };
        for _ in 0..times {
            fill_and_empty(bench, jobs)?;
        }
        jobs *= 10;
    }
    let grown = |series: fn(u64) -> String, from, what: fn(&Figures) -> f64| {
        bench.median((&series(largest), Ours), what) / bench.median((&series(from), Ours), what)
    };
    let size = count(largest as f64);
    let goal = |what: &str, limit, figure| {
        let what = format!("{size} jobs, {what}");
        Goal::new(15, what, AtMost(limit), Unit::OfItself, figure)
    };
    let peak = |figures: &Figures| figures.peak_rss;
    let goals = vec![
        goal(
            "producer, CPU per job, to 1,000 jobs",
            1.25,
            grown(enqueueing, SMALLEST, cpu),
        ),
        goal(
            "worker, CPU per job, to 1,000 jobs",
            1.25,
            grown(working, SMALLEST, cpu),
        ),
        goal(
            "producer, memory, to 10,000 jobs",
            1.1,
            grown(enqueueing, MEMORY, peak),
        ),
        goal(
            "worker, memory, to 10,000 jobs",
            1.1,
            grown(working, MEMORY, peak),
        ),
    ];
    if !bench.is_long() {
        let million = "1,000,000 jobs: CPU per job and memory of producer and worker";
        let open = Goal::in_long_form(15, million, AtMost(1.25), Unit::OfItself, None);
        return Ok([goals, vec![open]].concat());
    }
    Ok(goals)
}

fn enqueueing(jobs: u64) -> String {
    format!("growth: enqueue {}", count(jobs as f64))
}

fn working(jobs: u64) -> String {
    format!("growth: work off {}", count(jobs as f64))
}

fn fill_and_empty(bench: &mut Bench, jobs: u64) -> Result<(), Failure> {
    let queue = bench.broker.queue();
    let fill = Case::new(enqueueing(jobs), Ours, "enqueue").enqueues(TASKS, jobs);
    // The warm-up of the other lies there too.
    let empty = Case::new(working(jobs), Ours, "drain").works(jobs + TASKS, 100, 10);
    for case in [fill, empty] {
        let figures = bench.run_on(&case, &queue, &bench.broker.url)?;
        let (rate, cpu) = (count(rate(&figures)), cpu(&figures));
        eprintln!("growth   {:40} {rate:>9}/s {cpu:7.1} µs CPU", case.series);
        bench.keep(&case, figures);
    }
    bench.broker.delete(&queue)
}
