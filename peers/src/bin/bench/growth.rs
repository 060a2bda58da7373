//! Goal 15: whether a thousand jobs or a million make a difference to the client.

use peers::bench::{Failure, Figures};

use crate::{
    goal::{AtLeast, AtMost, Goal, Limit, Unit},
    program::Program::{self, Ours, Raw},
    report::count,
    series::{Bench, Case, cpu, rate},
};

const SMALLEST: u64 = 1_000;
/// Memory and rates are compared with this many: fewer fill no buffer and take no time.
const SMALL: u64 = 10_000;
const TASKS: u64 = 256;

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    let largest = bench.pick(100_000, 1_000_000).max(SMALL);
    let mut jobs = SMALLEST;
    while jobs <= largest {
        // What is short varies most.
        let times = if jobs < 100_000 { bench.rounds } else { 1 };
        for _ in 0..times {
            fill_and_empty(bench, Ours, jobs)?;
            if bench.is_long() && (jobs == SMALL || jobs == largest) {
                fill_and_empty(bench, Raw, jobs)?;
            }
        }
        jobs *= 10;
    }
    let grown = |program, series: fn(u64) -> String, from, what: fn(&Figures) -> f64| {
        let at = |jobs| bench.median((&series(jobs), program), what);
        at(largest) / at(from)
    };
    let ours = |what: &str, limit, series, from, measured| {
        goal(
            largest,
            what,
            limit,
            Some(grown(Ours, series, from, measured)),
        )
    };
    let peak = |figures: &Figures| figures.peak_rss;
    // What slows bare lapin as much is the broker.
    let by_raw = |what: &str, series| {
        let figure = grown(Ours, series, SMALL, rate) / grown(Raw, series, SMALL, rate);
        let figure = bench.is_long().then_some(figure);
        goal(1_000_000, what, AtLeast(0.8), figure)
    };
    let (producer, worker) = (enqueueing, working);
    Ok(vec![
        ours(
            "producer, CPU per job, to 1,000 jobs",
            AtMost(1.25),
            producer,
            SMALLEST,
            cpu,
        ),
        ours(
            "worker, CPU per job, to 1,000 jobs",
            AtMost(1.25),
            worker,
            SMALLEST,
            cpu,
        ),
        ours(
            "producer, memory, to 10,000 jobs",
            AtMost(1.1),
            producer,
            SMALL,
            peak,
        ),
        ours(
            "worker, memory, to 10,000 jobs",
            AtMost(1.1),
            worker,
            SMALL,
            peak,
        ),
        by_raw("producer, rate, to 10,000 jobs, by raw lapin's", producer),
        by_raw("worker, rate, to 10,000 jobs, by raw lapin's", worker),
    ])
}

fn goal(jobs: u64, what: &str, limit: Limit, figure: Option<f64>) -> Goal {
    let what = format!("{} jobs: {what}", count(jobs as f64));
    Goal::in_long_form(15, what, limit, Unit::OfItself, figure)
}

fn enqueueing(jobs: u64) -> String {
    format!("enqueue {}, 256 tasks", count(jobs as f64))
}

fn working(jobs: u64) -> String {
    format!("work off {}, prefetch 100", count(jobs as f64))
}

fn fill_and_empty(bench: &mut Bench, program: Program, jobs: u64) -> Result<(), Failure> {
    let queue = bench.broker.queue();
    let fill = Case::new(enqueueing(jobs), program, "enqueue").enqueues(TASKS, jobs);
    // What the other enqueued before its clock started lies there too.
    let empty = Case::new(working(jobs), program, "drain").works(jobs + TASKS, 100, 10);
    for case in [fill, empty] {
        let figures = bench.run_on(&case, &queue, &bench.broker.url)?;
        let (rate, cpu) = (count(rate(&figures)), cpu(&figures));
        eprintln!(
            "growth   {:40} {program:6} {rate:>9}/s {cpu:7.1} µs CPU",
            case.series
        );
        bench.keep(&case, figures);
    }
    bench.broker.delete(&queue)
}
