//! [`verdict`]: how a program ended → what becomes of its job.

use std::{
    error::Error, fmt, os::unix::process::ExitStatusExt, path::Path, process::ExitStatus,
    time::Duration,
};

use queuey_rabbitmq::JobError;

use super::output::Tail;

/// `EX_TEMPFAIL` of sysexits.h.
const TEMPORARY: i32 = 75;
const PERMANENT: i32 = 100;
/// What a shell that is ended by SIGTERM may answer.
const TERMINATED: i32 = 128 + 15;

/// Why a program was told to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    TimedOut(Duration),
    Cancelled,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) program: &'a Path,
    pub(super) status: ExitStatus,
    pub(super) told: Option<Stop>,
    pub(super) control: Result<Option<Duration>, String>,
    pub(super) output: &'a Tail,
}

pub(super) fn verdict(ended: Ended<'_>) -> Result<(), JobError> {
    let status = ended.status;
    let cancelled = matches!(ended.told, Some(Stop::Cancelled));
    let error = |what| ProgramError {
        what: format!("{} {what}", ended.program.display()),
        output: ended.output.text().map(Output),
    };
    match (status.code(), ended.told, &ended.control) {
        (_, Some(Stop::TimedOut(limit)), _) => {
            let limit = humantime::format_duration(limit);
            let what = format!("timed out after {limit}: {}", words(status));
            Err(JobError::retryable(error(what)))
        }
        (Some(PERMANENT), ..) => Err(JobError::fatal(error(words(status)))),
        (Some(0 | TEMPORARY), _, Ok(Some(delay))) => Err(JobError::deferred_because(
            *delay,
            "the program asks for it",
        )),
        (Some(0 | TEMPORARY), _, Err(why)) => Err(JobError::retryable(error(format!(
            "{}, and {why}",
            words(status)
        )))),
        (Some(0), ..) => Ok(()),
        (code, ..) if cancelled && code.is_none_or(|code| code == TERMINATED) => Err(
            JobError::deferred_because(Duration::ZERO, "the runner stops"),
        ),
        _ => Err(JobError::retryable(error(words(status)))),
    }
}

fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}{}", name(signal)),
        _ => format!("ended: {status}"),
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// A program that failed, with the end of what it printed as its source.
#[derive(Debug)]
struct ProgramError {
    what: String,
    output: Option<Output>,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for ProgramError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.output.as_ref().map(|output| output as _)
    }
}

/// The end of what a program printed.
#[derive(Debug)]
struct Output(String);

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Output {}
