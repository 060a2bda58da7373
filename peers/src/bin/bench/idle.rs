//! Goal 12: a worker with nothing to do.

use std::thread;

use peers::bench::Failure;

use crate::{
    goal::{AtMost, Goal, Unit},
    program::Program::{Ours, Queuey},
    series::{Bench, Case},
};

const IDLE: &str = "idle worker";

pub(crate) fn measure(bench: &mut Bench) -> Result<Vec<Goal>, Failure> {
    let seconds = bench.pick(10, 30);
    let case = |program| Case::new(IDLE, program, "idle").set("seconds", seconds);
    // All at once: who does nothing disturbs nobody.
    let cases = vec![[case(Ours), case(Queuey)]; bench.rounds].concat();
    let shared = &*bench;
    let ran: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = cases
            .iter()
            .map(|case| scope.spawn(move || shared.run(case)))
            .collect();
        running.into_iter().map(|run| run.join()).collect()
    });
    for (case, figures) in cases.iter().zip(ran) {
        let figures = figures.map_err(|_| "an idle run panicked")??;
        bench.keep(case, figures);
    }
    for program in [Ours, Queuey] {
        let of = (IDLE, program);
        let rss = bench.median(of, |figures| figures.rss / 1e6);
        let cpu = bench.median(of, |figures| figures.cpu_us / 1e3);
        let threads = bench.median(of, |figures| figures.threads);
        let note = format!(
            "{program}: idle for {seconds} s, {rss:.2} MB, {cpu:.1} ms CPU, {threads} threads"
        );
        eprintln!("idle     {note}");
        bench.notes.push(note);
    }
    let ours = (IDLE, Ours);
    let rss = bench.median(ours, |figures| figures.rss / 1e6);
    let share = bench.ratio(ours, (IDLE, Queuey), |figures| figures.rss);
    let cpu = bench.median(ours, |figures| figures.cpu_us / 1e3);
    let threads = bench.median(ours, |figures| figures.threads);
    let limit = 10.0 * seconds as f64 / 30.0;
    let goal = |what, limit, unit, figure| Goal::new(12, what, AtMost(limit), unit, figure);
    Ok(vec![
        goal("idle worker, memory", 6.5, Unit::Megabytes, rss),
        goal("idle worker, memory", 0.5, Unit::OfQueuey, share),
        goal(
            &format!("idle worker, CPU in {seconds} s"),
            limit,
            Unit::Milliseconds,
            cpu,
        ),
        goal("idle worker, threads", 7.0, Unit::Number, threads),
    ])
}
