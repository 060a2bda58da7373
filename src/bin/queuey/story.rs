//! [`story`]: all that is known of a dead job, for a person to read.

use std::{
    fmt::Write,
    time::{Duration, UNIX_EPOCH},
};

use queuey_rabbitmq::{Envelope, Failure, FailureKind, admin::Letter};

use crate::{
    cause::Cause,
    output::{age, one_line},
};

/// Lines under headings, each with what is known; what is not known has no line.
#[derive(Default)]
struct Story(String);

pub(crate) fn story(letter: &Letter) -> String {
    let mut story = Story::default();
    if let Some(job) = &letter.envelope {
        story.identity(job);
    }
    let cause = Cause::of(letter).map(Cause::name);
    story.line("cause", cause);
    story.line("reason", letter.reason());
    if let Some(job) = &letter.envelope {
        if let Some(failure) = job.failure() {
            story.failure(failure);
        }
        story.line("payload", Some(job.payload.get()));
    }
    story.0
}

impl Story {
    fn line(&mut self, heading: &str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            let text = one_line(text.as_ref());
            let _ = writeln!(self.0, "{heading:<9} {text}");
        }
    }

    fn identity(&mut self, job: &Envelope) {
        self.line("job", Some(job.job_id.to_string()));
        self.line("type", Some(&job.job_type));
        self.line("queue", Some(&job.queue));
        self.line("enqueued", Some(time(job.enqueued_at_ms)));
        let (attempt, deferrals, priority) = (job.attempt, job.deferrals, job.priority);
        let state = format!("{attempt}; deferrals {deferrals}, priority {priority}");
        self.line("attempt", Some(state));
        self.line("belongs", job.correlation_id.as_ref());
    }

    fn failure(&mut self, failure: &Failure) {
        self.line("failed", Some(time(failure.failed_at_ms)));
        self.line(
            "on",
            Some(format!("{}, process {}", failure.host, failure.pid)),
        );
        self.line("place", failure.place.as_ref());
        self.line("error", failure.error_type.as_ref());
        let kind = match failure.kind {
            _ if failure.error_type.is_some() => "",
            FailureKind::Panic => "panic",
            FailureKind::Timeout => "timeout",
            _ => "error",
        };
        for (depth, error) in failure.chain.iter().enumerate() {
            self.line(if depth == 0 { kind } else { "because" }, Some(error));
        }
        for before in &failure.earlier {
            let when = time(before.at_ms);
            let text = format!("attempt {}, {when}: {}", before.attempt, before.error);
            self.line("before", Some(text));
        }
    }
}

/// When, and how long ago.
fn time(unix_ms: u64) -> String {
    // Of the year 9999: what is later has no form, and whoever wrote it made it up.
    const LAST: u64 = 253_402_300_799_999;
    if unix_ms > LAST {
        return format!("{unix_ms} ms after 1970");
    }
    let at = UNIX_EPOCH + Duration::from_millis(unix_ms);
    let ago = age(at.elapsed().unwrap_or_default());
    format!("{}, {ago} ago", humantime::format_rfc3339_seconds(at))
}
