//! `bench`: runs the programs in turn and judges the goals. Started by `peers/bench`.

mod broker;
mod chart;
mod enqueue;
mod goal;
mod growth;
mod idle;
mod latency;
mod program;
mod readme;
mod relay;
mod report;
mod retry;
mod series;
mod size;
mod work;

use std::{env, process::ExitCode, time::Instant};

use peers::bench::Failure;

use goal::Goal;
use series::{Bench, Form};

fn run() -> Result<bool, Failure> {
    let form = match env::args().nth(1).as_deref() {
        Some("--smoke") => Form::Smoke,
        Some("--short") => Form::Short,
        _ => Form::Long,
    };
    let start = Instant::now();
    let mut bench = Bench::new(form)?;
    let mut goals: Vec<Goal> = Vec::new();
    for measure in [
        size::measure,
        enqueue::measure,
        work::measure,
        retry::measure,
        latency::measure,
        idle::measure,
        growth::measure,
    ] {
        goals.extend(measure(&mut bench)?);
    }
    goals.sort_by_key(|goal| goal.number);
    print!("{}", report::table(&goals));
    eprintln!("{} s", start.elapsed().as_secs());
    if form == Form::Smoke {
        return Ok(true);
    }
    report::write(&bench, &goals)?;
    Ok(goals.iter().all(Goal::is_not_missed))
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}
