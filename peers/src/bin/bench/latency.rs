//! Goal 9: from the enqueue call to the start of the handler.

use peers::bench::Failure;

use crate::{
    goal::{AtMost, Goal, Unit},
    program::Program::{Ours, Queuey, Raw},
    series::{Bench, Case},
};

const LATENCY: &str = "100 jobs a second";

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    // The first second warms up.
    let seconds = bench.pick(10, 30).max(2);
    let cases = [Ours, Queuey, Raw]
        .map(|program| Case::new(LATENCY, program, "latency").set("seconds", seconds));
    bench.rounds(&cases)?;
    for program in [Ours, Queuey, Raw] {
        let p50 = bench.median((LATENCY, program), |figures| figures.p50_us);
        let p99 = bench.median((LATENCY, program), |figures| figures.p99_us);
        let note = format!("{program}: latency p50 {p50:.0} µs, p99 {p99:.0} µs");
        eprintln!("latency  {note}");
        bench.notes.push(note);
    }
    let to_raw = |what| bench.ratio((LATENCY, Ours), (LATENCY, Raw), what);
    let (p50, p99) = (to_raw(|f| f.p50_us), to_raw(|f| f.p99_us));
    Ok(vec![
        Goal::new(9, "latency, p50", AtMost(1.15), Unit::OfRaw, p50),
        Goal::new(9, "latency, p99", AtMost(1.3), Unit::OfRaw, p99),
    ])
}
