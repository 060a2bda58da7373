//! Tables, lines and JSON on standard output; counts and a progress bar beside it.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};
use base64::{Engine, prelude::BASE64_STANDARD};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use queuey_rabbitmq::{admin::Letter, codec};
use serde_json::{Value, json, value::RawValue};

use crate::{cause::Cause, failure::Failure};

/// Rows: aligned under a header on a terminal, else tab-separated.
pub(crate) struct Table {
    out: BufWriter<io::Stdout>,
    widths: Vec<usize>,
    aligned: bool,
}

impl Table {
    /// Columns by title and width; what is wider pushes the rest to the right.
    pub(crate) fn new(columns: &[(&str, usize)]) -> Result<Self, Failure> {
        let mut table = Self {
            out: BufWriter::new(io::stdout()),
            widths: columns.iter().map(|&(_, width)| width).collect(),
            aligned: io::stdout().is_terminal(),
        };
        if table.aligned {
            let plain = AutoStream::choice(&io::stdout()) == ColorChoice::Never;
            let (bold, reset) = if plain {
                ("", "")
            } else {
                ("\u{1b}[1m", "\u{1b}[0m")
            };
            write!(table.out, "{bold}")?;
            for &(title, width) in columns {
                write!(table.out, "{title:<width$}  ")?;
            }
            writeln!(table.out, "{reset}")?;
        }
        Ok(table)
    }

    pub(crate) fn row(&mut self, cells: &[String]) -> Result<(), Failure> {
        for (place, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let cell = one_line(cell);
            match (self.aligned, place + 1 == cells.len()) {
                (true, false) => write!(self.out, "{cell:<width$}  ")?,
                (false, false) => write!(self.out, "{cell}\t")?,
                (_, true) => writeln!(self.out, "{cell}")?,
            }
        }
        Ok(())
    }

    /// Lets readers have what there is so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

/// `text` without line breaks, and without what a terminal takes for commands.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(shown).collect()
}

/// One JSON object per line.
pub(crate) struct Lines(BufWriter<io::Stdout>);

impl Lines {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout()))
    }

    pub(crate) fn line(&mut self, value: &impl serde::Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.0, value).map_err(io::Error::from)?;
        Ok(writeln!(self.0)?)
    }

    /// Lets readers have what there is so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

/// The outcome of a command in one line: `text`, or with --json `value`.
pub(crate) fn summary(json: bool, text: &str, value: &Value) -> Result<(), Failure> {
    match json {
        true => Ok(writeln!(io::stdout(), "{value}")?),
        false => Ok(writeln!(io::stdout(), "{text}")?),
    }
}

/// What a message is, its body included, as export and --json print it.
#[derive(serde::Serialize)]
pub(crate) struct Record<'a> {
    cause: Option<String>,
    reason: Option<String>,
    redelivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a queuey_rabbitmq::Failure>,
    /// All but the failure.
    headers: Value,
    #[serde(flatten)]
    body: Body<'a>,
}

impl<'a> Record<'a> {
    pub(crate) fn of(letter: &'a Letter) -> Self {
        let failure = letter.envelope.as_ref().and_then(|job| job.failure());
        let mut headers = letter.headers_json();
        if failure.is_some()
            && let Some(headers) = headers.as_object_mut()
        {
            headers.remove(codec::FAILURE);
        }
        Self {
            cause: Cause::of(letter).map(Cause::name),
            failure,
            reason: letter.reason(),
            redelivered: letter.redelivered,
            headers,
            body: Body::of(&letter.body, letter.envelope.is_some()),
        }
    }
}

/// The body of a message as it is; if it is no job or cannot stand in a line, as base64.
#[derive(serde::Serialize)]
pub(crate) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

impl<'a> Body<'a> {
    pub(crate) fn of(body: &'a [u8], is_job: bool) -> Self {
        let is_line = is_job && !body.contains(&b'\n') && !body.contains(&b'\r');
        let job = is_line.then(|| serde_json::from_slice(body).ok()).flatten();
        Self {
            body_base64: job.is_none().then(|| BASE64_STANDARD.encode(body)),
            job,
        }
    }
}

/// The columns that tell one message from another.
pub(crate) const LETTER: [(&str, usize); 6] = [
    ("ID", 36),
    ("TYPE", 20),
    ("ATTEMPT", 7),
    ("AGE", 8),
    ("CAUSE", 9),
    ("REASON", 0),
];

pub(crate) fn letter_row(letter: &Letter) -> Vec<String> {
    let reason = letter.reason().unwrap_or_default();
    let cause = Cause::of(letter).map_or("-".into(), Cause::name);
    match &letter.envelope {
        Some(job) => vec![
            job.job_id.to_string(),
            job.job_type.clone(),
            job.attempt.to_string(),
            age(letter.age().unwrap_or_default()),
            cause,
            reason,
        ],
        None => {
            let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
            let (id, kind) = (or_dash(letter.message_id()), or_dash(letter.message_type()));
            vec![id, kind, "-".into(), "-".into(), cause, reason]
        }
    }
}

/// In the largest whole unit, as operators speak of it.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A bar on a terminal, nothing elsewhere.
pub(crate) fn progress(total: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{wide_bar} {pos}/{len} {per_sec} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Counts as JSON beside whether they are only what would be.
pub(crate) fn counted(dry_run: bool, counts: &[(&str, u64)]) -> Value {
    let mut value = json!({ "dry_run": dry_run });
    for &(name, count) in counts {
        value[name] = count.into();
    }
    value
}
