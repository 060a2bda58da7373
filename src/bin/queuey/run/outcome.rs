//! [`verdict`]: how a program ended → what becomes of its job.

use std::{os::unix::process::ExitStatusExt, path::Path, process::ExitStatus, time::Duration};

use queuey_rabbitmq::{Failure, FailureKind, JobError};

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
    let failed = |what: String| {
        let mut failure = failure(format!("{} {what}", ended.program.display()));
        failure.chain.extend(ended.output.text());
        failure
    };
    match (status.code(), ended.told, &ended.control) {
        (_, Some(Stop::TimedOut(limit)), _) => {
            let limit = humantime::format_duration(limit);
            let mut failure = failed(format!("timed out after {limit}: {}", words(status)));
            failure.kind = FailureKind::Timeout;
            Err(failure.into())
        }
        (Some(PERMANENT), ..) => Err(JobError::fatal(failed(words(status)))),
        (Some(0 | TEMPORARY), _, Ok(Some(delay))) => Err(JobError::deferred_because(
            *delay,
            "the program asks for it",
        )),
        (Some(0 | TEMPORARY), _, Err(why)) => {
            Err(failed(format!("{}, and {why}", words(status))).into())
        }
        (Some(0), ..) => Ok(()),
        (code, ..) if cancelled && code.is_none_or(|code| code == TERMINATED) => Err(
            JobError::deferred_because(Duration::ZERO, "the runner stops"),
        ),
        _ => Err(failed(words(status)).into()),
    }
}

/// A failure in these words. Of a place in our own source, nobody has any use.
pub(super) fn failure(words: String) -> Failure {
    Failure::new(0, words)
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
