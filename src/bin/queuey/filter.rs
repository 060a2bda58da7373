//! [`Filter`]: which messages a command is about.

use std::{ops::RangeInclusive, time::Duration};

use clap::Args;
use queuey_rabbitmq::{Envelope, Uuid, admin::Letter};

use crate::cause::Cause;

/// Which jobs, by what they are.
#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Jobs of this type; more than once: of any of these
    #[arg(long = "type", value_name = "JOB_TYPE")]
    types: Vec<String>,
    /// The job of this id; more than once: any of these
    #[arg(long = "id", value_name = "JOB_ID")]
    ids: Vec<Uuid>,
}

/// Which messages; all that is given must hold.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which messages (all that is given must hold)")]
pub(crate) struct Filter {
    #[command(flatten)]
    jobs: Jobs,
    /// Those that this has ended; more than once: any of these
    #[arg(long = "cause", value_name = "CAUSE")]
    causes: Vec<Cause>,
    /// Those with this text in their reason or in the error behind it, in upper or lower case
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Jobs that failed longer ago than this, such as 2h or 3days; first enqueued, if not known
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
    /// Jobs that failed within this time
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    newer_than: Option<Duration>,
    /// Jobs at this attempt, or of these: 3, 3-5, 3-
    #[arg(long, value_name = "N[-[M]]", value_parser = attempts)]
    attempt: Option<RangeInclusive<u32>>,
}

impl Jobs {
    /// Whether `job` is one of them; what is no job is not, unless all are.
    pub(crate) fn include(&self, job: Option<&Envelope>) -> bool {
        (self.types.is_empty() || job.is_some_and(|job| self.types.contains(&job.job_type)))
            && (self.ids.is_empty() || job.is_some_and(|job| self.ids.contains(&job.job_id)))
    }
}

impl Filter {
    pub(crate) fn matches(&self, letter: &Letter) -> bool {
        let any = |cause| self.causes.contains(&cause);
        if !self.causes.is_empty() && !Cause::of(letter).is_some_and(any)
            || !self.jobs.include(letter.envelope.as_ref())
            || !self
                .error
                .as_ref()
                .is_none_or(|text| speaks_of(letter, text))
        {
            return false;
        }
        match &letter.envelope {
            Some(job) => {
                let age = letter.age().unwrap_or_default();
                self.older_than.is_none_or(|limit| age > limit)
                    && self.newer_than.is_none_or(|limit| age <= limit)
                    && self
                        .attempt
                        .as_ref()
                        .is_none_or(|it| it.contains(&job.attempt))
            }
            // Of a body that is no job, only cause and reason are known.
            None => {
                self.older_than.is_none() && self.newer_than.is_none() && self.attempt.is_none()
            }
        }
    }
}

/// Whether what is known of the job's end contains `text`.
fn speaks_of(letter: &Letter, text: &str) -> bool {
    let text = text.to_lowercase();
    let contains = |said: &str| said.to_lowercase().contains(&text);
    let failure = letter.envelope.as_ref().and_then(|job| job.failure());
    letter.reason().is_some_and(|reason| contains(&reason))
        || failure.is_some_and(|failure| {
            let words = failure.chain.iter().chain(&failure.error_type);
            words.chain(&failure.place).any(|said| contains(said))
        })
}

fn attempts(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| text.parse().map_err(|error| format!("`{text}`: {error}"));
    match text.split_once('-') {
        None => number(text).map(|it| it..=it),
        Some((from, "")) => Ok(number(from)?..=u32::MAX),
        Some((from, to)) => Ok(number(from)?..=number(to)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_one_or_a_range() {
        assert_eq!(attempts("3"), Ok(3..=3));
        assert_eq!(attempts("3-5"), Ok(3..=5));
        assert_eq!(attempts("3-"), Ok(3..=u32::MAX));
        assert!(attempts("-3").is_err());
        assert!(attempts("x").is_err());
    }
}
