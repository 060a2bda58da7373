//! What the run found, as text.

use std::{env, fmt::Write, fs, process::Command, thread};

use peers::bench::{Failure, Mail, wire};

use crate::{
    chart,
    goal::Goal,
    program::Program::{Ours, Queuey, Raw},
    readme,
    series::{Bench, cpu, rate},
};

/// The goals, as a Markdown table.
pub(crate) fn table(goals: &[Goal]) -> String {
    let mut text = String::from("| # | what | goal | figure | |\n|---|---|---|---|---|\n");
    for goal in goals {
        let (what, verdict) = (&goal.what, goal.verdict());
        let (limit, figure) = (goal.goal_text(), goal.figure_text());
        let number = goal.number;
        text += &format!("| {number} | {what} | {limit} | {figure} | {verdict} |\n");
    }
    text
}

/// Writes `peers/results.md`, `peers/results.svg` and their place in README.md.
pub(crate) fn write(bench: &Bench, goals: &[Goal]) -> Result<(), Failure> {
    let date = said("date", &["-u", "+%F"])?;
    let command = if bench.is_long() {
        "peers/bench"
    } else {
        "peers/bench --short"
    };
    let (versions, rounds) = (versions()?, bench.rounds);
    let mut text = format!(
        "# Benchmark, {date}\n\n`{command}` measures this again.\n\n{versions}\n\n{}",
        method(bench)?
    );
    text += "\n## Goals\n\n";
    text += &table(goals);
    text += "\n![the ratios](results.svg)\n\n## Figures\n\n";
    text += "Medians of the rounds. `enqueue_all`: batches of 1,000; queuey in a loop, raw lapin in \
             batches of 256.\n\n";
    text += &figures(bench)?;
    text += "\n";
    for note in &bench.notes {
        writeln!(text, "- {note}")?;
    }
    fs::write("peers/results.md", text)?;
    fs::write("peers/results.svg", chart::draw(goals))?;
    let about = format!(
        "Medians of {rounds} rounds on {date}; `{command}` measures this again. {versions}"
    );
    readme::write(&about, goals)
}

fn versions() -> Result<String, Failure> {
    let commit = said("git", &["describe", "--always", "--dirty"])?;
    let rustc = said("rustc", &["--version"])?;
    let rabbitmq = env::var("RABBITMQ_VERSION").unwrap_or("of unknown version".into());
    let lock = fs::read_to_string("Cargo.lock")?;
    let lapin = locked(&lock, "lapin").ok_or("Cargo.lock names no lapin")?;
    let queuey = locked(&lock, "queuey").ok_or("Cargo.lock names no queuey")?;
    let cores = thread::available_parallelism()?;
    let cpu = fs::read_to_string("/proc/cpuinfo")?;
    let cpu = cpu
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(": "))
        .map_or("CPU", |(_, model)| model);
    Ok(format!(
        "This library at {commit}, queuey {queuey}, lapin {lapin}, RabbitMQ {rabbitmq}, {rustc}, \
         {cores} cores ({cpu}), shared with the broker."
    ))
}

fn method(bench: &Bench) -> Result<String, Failure> {
    let bytes = wire::Message::new(&bench.broker.queue(), &Mail::new())?.bytes();
    let rounds = bench.rounds;
    Ok(format!(
        "Every figure is the median of {rounds} rounds, every ratio the median of the ratios of \
         the rounds; in a round the programs run one after another, each measurement in a fresh \
         process. Durable classic queues, persistent and mandatory messages of {bytes} bytes of \
         JSON, loopback. MB are millions of bytes. A worker's time runs from the first job that \
         starts to the last that is acked.\n"
    ))
}

/// The version of a package that is locked in only one.
fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(after.split_once('"')?.0)
}

fn said(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// A row for each series and program that has a rate.
fn figures(bench: &Bench) -> Result<String, Failure> {
    let mut text = String::from(
        "| series | program | jobs/s | CPU µs per job | context switches per job | peak MB |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut series: Vec<&str> = Vec::new();
    for sample in &bench.samples {
        if sample.figures.jobs > 1 && !series.contains(&sample.series.as_str()) {
            series.push(&sample.series);
        }
    }
    for series in series {
        for program in [Ours, Queuey, Raw] {
            let of = (series, program);
            if bench.all(of, rate).is_empty() {
                continue;
            }
            let rate = count(bench.median(of, rate));
            let cpu = bench.median(of, cpu);
            let switches = bench.median(of, |figures| figures.switches / figures.jobs as f64);
            let peak = bench.median(of, |figures| figures.peak_rss / 1e6);
            writeln!(
                text,
                "| {series} | {program} | {rate} | {cpu:.1} | {switches:.2} | {peak:.1} |"
            )?;
        }
    }
    Ok(text)
}

/// A number with its thousands apart.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
