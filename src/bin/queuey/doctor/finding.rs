//! [`Finding`]: what will bite, and what to do about it.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
};

use serde::Serialize;

use crate::{
    failure::Failure,
    output::{Lines, one_line},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Jobs fail or are lost, or nothing runs.
    Error,
    /// It works, and will not for ever.
    Warning,
    /// Good to know.
    Note,
}

#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    severity: Severity,
    /// What was looked at; a name for scripts, which stays.
    check: &'static str,
    /// The queue, or else the broker.
    subject: String,
    problem: String,
    advice: String,
}

/// All that was found, and what could not be looked at.
#[derive(Debug, Default)]
pub(crate) struct Report {
    findings: Vec<Finding>,
    /// By what it would take.
    unchecked: BTreeMap<String, Vec<&'static str>>,
}

impl Report {
    pub(crate) fn error(
        &mut self,
        check: &'static str,
        subject: &str,
        problem: &str,
        advice: &str,
    ) {
        self.add(Severity::Error, check, subject, problem, advice);
    }

    pub(crate) fn warning(
        &mut self,
        check: &'static str,
        subject: &str,
        problem: &str,
        advice: &str,
    ) {
        self.add(Severity::Warning, check, subject, problem, advice);
    }

    pub(crate) fn note(&mut self, check: &'static str, subject: &str, problem: &str, advice: &str) {
        self.add(Severity::Note, check, subject, problem, advice);
    }

    pub(crate) fn add(
        &mut self,
        severity: Severity,
        check: &'static str,
        subject: &str,
        problem: &str,
        advice: &str,
    ) {
        self.findings.push(Finding {
            severity,
            check,
            subject: subject.into(),
            problem: problem.into(),
            advice: advice.into(),
        });
    }

    /// `what` could not be looked at, because of `why`.
    pub(crate) fn not_checked(&mut self, what: &'static str, why: impl Into<String>) {
        self.unchecked.entry(why.into()).or_default().push(what);
    }

    /// Prints all, the worst first; [`Failure::Found`] if one is an error or a warning.
    pub(crate) fn print(mut self, json: bool) -> Result<(), Failure> {
        self.findings.sort_by_key(|finding| finding.severity);
        let is_terminal = io::stdout().is_terminal();
        let mut lines = Lines::new();
        let mut out = anstream::stdout();
        for finding in &self.findings {
            match json {
                true => lines.line(finding)?,
                false => writeln!(out, "{}", finding.text(is_terminal))?,
            }
        }
        lines.end()?;
        if self.findings.is_empty() && is_terminal && !json {
            writeln!(out, "nothing found")?;
        }
        for (why, what) in &self.unchecked {
            eprintln!("not checked: {}; {why}", what.join(", "));
        }
        let is_fine = |finding: &Finding| finding.severity == Severity::Note;
        match self.findings.iter().all(is_fine) {
            true => Ok(()),
            false => Err(Failure::Found),
        }
    }
}

impl Finding {
    /// Two lines for a person, or one with tabs in between for a program.
    fn text(&self, is_terminal: bool) -> String {
        let (name, color) = match self.severity {
            Severity::Error => ("error", "\u{1b}[1;31m"),
            Severity::Warning => ("warning", "\u{1b}[1;33m"),
            Severity::Note => ("note", "\u{1b}[1m"),
        };
        let [subject, problem, advice] =
            [&self.subject, &self.problem, &self.advice].map(|text| one_line(text));
        match is_terminal {
            true => format!(
                "{color}{name}\u{1b}[0m [{}] {subject}: {problem}\n  do: {advice}",
                self.check
            ),
            false => format!("{name}\t{}\t{subject}\t{problem}\t{advice}", self.check),
        }
    }
}
