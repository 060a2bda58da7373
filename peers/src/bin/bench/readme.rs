//! The ratios in short, between two marks of README.md.

use std::fs;

use peers::bench::Failure;

use crate::goal::{AtLeast, AtMost, Goal, Unit};

const FROM: &str = "<!-- written by peers/bench -->\n";
const TO: &str = "<!-- until here -->";

/// Goals of these are shown; the chart has the others too.
const SUBJECTS: [&str; 10] = [
    "enqueue, 256 tasks",
    "enqueue_all",
    "enqueue in a loop",
    "worker, prefetch 100",
    "worker, prefetch 100, no priorities",
    "2,000 retries after 1 s, time above the delay",
    "latency, p99",
    "CPU per enqueue, 256 tasks",
    "CPU per job, prefetch 100, no priorities",
    "idle worker, memory",
];

/// Replaces what stands between the marks.
pub(crate) fn write(about: &str, goals: &[Goal]) -> Result<(), Failure> {
    let readme = fs::read_to_string("README.md")?;
    let (before, rest) = readme.split_once(FROM).ok_or("README.md: no first mark")?;
    let (_, after) = rest.split_once(TO).ok_or("README.md: no second mark")?;
    let mut table = String::from("| | times queuey's | times raw lapin's |\n|---|---|---|\n");
    for subject in SUBJECTS {
        let [queuey, raw] = [Unit::OfQueuey, Unit::OfRaw].map(|unit| cell(goals, subject, unit));
        table += &format!("| {subject} | {queuey} | {raw} |\n");
    }
    let met = goals.iter().filter(|goal| goal.is_met() == Some(true));
    let measured = goals.iter().filter(|goal| goal.is_met().is_some());
    let (met, measured) = (met.count(), measured.count());
    let text = format!(
        "{about}\n\n{table}\n\
         In brackets the goals, ≥ for rates and ≤ for costs. Of all {measured} that were measured, \
         {met} are met: [the whole list](peers/results.md).\n\n\
         ![the ratios as bars](peers/results.svg)\n"
    );
    Ok(fs::write(
        "README.md",
        [before, FROM, &text, TO, after].concat(),
    )?)
}

/// The figures of `subject` in this unit; more than one where the other program has settings.
fn cell(goals: &[Goal], subject: &str, unit: Unit) -> String {
    let mut figures = Vec::new();
    for goal in goals.iter().filter(|goal| goal.unit == unit) {
        let named = [", queuey ", ", raw lapin "];
        let setting = named.iter().find_map(|name| goal.what.split_once(name));
        let (what, setting) = setting.unwrap_or((&goal.what, ""));
        if let Some(figure) = goal.figure.filter(|_| what == subject) {
            let limit = match goal.limit {
                AtLeast(limit) => format!("≥ {limit:.2}"),
                AtMost(limit) => format!("≤ {limit:.2}"),
            };
            let text = format!("{figure:.2} {setting}");
            figures.push(format!("{} ({limit}, {})", text.trim(), goal.verdict()));
        }
    }
    figures.join("; ")
}
