//! Goals 1 to 5 and 10: enqueueing.

use peers::bench::Failure;

use crate::{
    goal::{AtLeast, AtMost, Goal, Unit},
    program::Program::{Ours, Queuey, Raw},
    series::{Bench, Case, cpu, rate},
};

const T64: &str = "enqueue, 64 tasks";
const T256: &str = "enqueue, 256 tasks";
const T256_WIDE: &str = "enqueue, 256 tasks, 64 channels";
const T1024: &str = "enqueue, 1024 tasks";
const T1024_WIDE: &str = "enqueue, 1024 tasks, 256 channels";
/// This library in batches of 1,000, queuey in a loop, raw lapin in batches of 256.
const ALL: &str = "enqueue_all";
const LOOP: &str = "enqueue in a loop";

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    let jobs = bench.pick(10_000, 30_000);
    let slow = bench.pick(1_500, 5_000);
    let wide = bench.pick(4_000, 12_000);
    let enqueue =
        |series, program, tasks, jobs| Case::new(series, program, "enqueue").enqueues(tasks, jobs);
    bench.rounds(&[
        enqueue(T64, Ours, 64, jobs),
        enqueue(T64, Queuey, 64, slow),
        enqueue(T64, Raw, 64, jobs),
        enqueue(T256, Ours, 256, jobs),
        enqueue(T256, Queuey, 256, slow),
        enqueue(T256, Raw, 256, jobs),
        enqueue(T256_WIDE, Queuey, 256, wide).set("channels", 64),
        enqueue(T1024, Ours, 1024, jobs),
        enqueue(T1024_WIDE, Queuey, 1024, wide).set("channels", 256),
        Case::new(ALL, Ours, "enqueue_all")
            .enqueues(1, jobs)
            .set("batch", 1000)
            .warm_up(1000),
        enqueue(ALL, Queuey, 1, slow),
        Case::new(ALL, Raw, "batch").enqueues(256, jobs),
        enqueue(LOOP, Ours, 1, slow),
        enqueue(LOOP, Raw, 1, slow),
    ])?;
    let times = |of, to| bench.ratio(of, to, rate);
    let cost = |to| bench.ratio((T256, Ours), to, cpu);
    let (queuey, raw) = (Unit::OfQueuey, Unit::OfRaw);
    let goal = Goal::new;
    Ok(vec![
        goal(
            1,
            "enqueue, 64 tasks",
            AtLeast(3.0),
            queuey,
            times((T64, Ours), (T64, Queuey)),
        ),
        goal(
            2,
            "enqueue, 256 tasks",
            AtLeast(4.0),
            queuey,
            times((T256, Ours), (T256, Queuey)),
        ),
        goal(
            2,
            "enqueue, 256 tasks, queuey with 64 channels",
            AtLeast(2.0),
            queuey,
            times((T256, Ours), (T256_WIDE, Queuey)),
        ),
        goal(
            2,
            "enqueue, 1024 tasks, queuey with 256 channels",
            AtLeast(1.7),
            queuey,
            times((T1024, Ours), (T1024_WIDE, Queuey)),
        ),
        goal(
            3,
            "enqueue, 256 tasks, raw lapin with 256 in flight",
            AtLeast(0.8),
            raw,
            times((T256, Ours), (T256, Raw)),
        ),
        goal(
            4,
            "enqueue_all, raw lapin in batches of 256",
            AtLeast(0.9),
            raw,
            times((ALL, Ours), (ALL, Raw)),
        ),
        goal(
            4,
            "enqueue_all, queuey in a loop",
            AtLeast(10.0),
            queuey,
            times((ALL, Ours), (ALL, Queuey)),
        ),
        goal(
            5,
            "enqueue in a loop",
            AtLeast(0.9),
            raw,
            times((LOOP, Ours), (LOOP, Raw)),
        ),
        goal(
            10,
            "CPU per enqueue, 256 tasks, queuey with 64 channels",
            AtMost(0.5),
            queuey,
            cost((T256_WIDE, Queuey)),
        ),
        goal(
            10,
            "CPU per enqueue, 256 tasks",
            AtMost(2.0),
            raw,
            cost((T256, Raw)),
        ),
    ])
}
