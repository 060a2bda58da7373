//! Goals 6, 7 and 11: workers that empty a queue.

use peers::bench::Failure;

use crate::{
    goal::{AtLeast, AtMost, Goal, Unit},
    program::Program::{Ours, Queuey, Raw},
    series::{Bench, Case, cpu, rate},
};

const P16: &str = "work, prefetch 16";
const P100: &str = "work, prefetch 100";
const PLAIN: &str = "work, prefetch 100, no priorities";

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    let jobs = bench.pick(6_000, 30_000);
    let drain = |series, program, prefetch, priorities| {
        Case::new(series, program, "drain").works(jobs, prefetch, priorities)
    };
    bench.rounds(&[
        drain(P16, Ours, 16, 10),
        drain(P16, Queuey, 16, 10),
        drain(P100, Ours, 100, 10),
        drain(P100, Queuey, 100, 10),
        drain(PLAIN, Ours, 100, 0),
        drain(PLAIN, Queuey, 100, 0),
        drain(PLAIN, Raw, 100, 0),
    ])?;
    let times = |series, to| bench.ratio((series, Ours), (series, to), rate);
    let (queuey, raw) = (Unit::OfQueuey, Unit::OfRaw);
    let cost = bench.ratio((PLAIN, Ours), (PLAIN, Queuey), cpu);
    let goal = Goal::new;
    Ok(vec![
        goal(
            6,
            "worker, prefetch 16",
            AtLeast(1.3),
            queuey,
            times(P16, Queuey),
        ),
        goal(
            6,
            "worker, prefetch 100",
            AtLeast(1.5),
            queuey,
            times(P100, Queuey),
        ),
        goal(
            7,
            "worker, prefetch 100, no priorities",
            AtLeast(1.15),
            queuey,
            times(PLAIN, Queuey),
        ),
        goal(
            7,
            "worker, prefetch 100, no priorities",
            AtLeast(0.7),
            raw,
            times(PLAIN, Raw),
        ),
        goal(
            11,
            "CPU per job, prefetch 100, no priorities",
            AtMost(0.85),
            queuey,
            cost,
        ),
    ])
}
