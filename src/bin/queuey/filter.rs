//! [`Filter`]: which messages a command is about.

use std::{ops::RangeInclusive, time::Duration};

use clap::Args;
use queuey_rabbitmq::{Uuid, admin::Letter};

/// Which messages; all that is given must hold.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which messages (all that is given must hold)")]
pub(crate) struct Filter {
    /// Jobs of this type; more than once: of any of these
    #[arg(long = "type", value_name = "JOB_TYPE")]
    types: Vec<String>,
    /// The job of this id; more than once: any of these
    #[arg(long = "id", value_name = "JOB_ID")]
    pub(crate) ids: Vec<Uuid>,
    /// Those whose reason contains this text, in upper or lower case
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Jobs first enqueued longer ago than this, such as 2h or 3days
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
    /// Jobs first enqueued within this time
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    newer_than: Option<Duration>,
    /// Jobs at this attempt, or of these: 3, 3-5, 3-
    #[arg(long, value_name = "N[-[M]]", value_parser = attempts)]
    attempt: Option<RangeInclusive<u32>>,
}

impl Filter {
    pub(crate) fn matches(&self, letter: &Letter) -> bool {
        let reason = |text: &String| {
            let reason = letter.reason().unwrap_or_default().to_lowercase();
            reason.contains(&text.to_lowercase())
        };
        if !self.reason.as_ref().is_none_or(reason) {
            return false;
        }
        match &letter.envelope {
            Some(job) => {
                let (types, ids) = (&self.types, &self.ids);
                (types.is_empty() || types.contains(&job.job_type))
                    && (ids.is_empty() || ids.contains(&job.job_id))
                    && self.older_than.is_none_or(|limit| job.age() > limit)
                    && self.newer_than.is_none_or(|limit| job.age() <= limit)
                    && self
                        .attempt
                        .as_ref()
                        .is_none_or(|it| it.contains(&job.attempt))
            }
            // Of a body that is no job, only the reason is known.
            None => {
                self.types.is_empty()
                    && self.ids.is_empty()
                    && self.older_than.is_none()
                    && self.newer_than.is_none()
                    && self.attempt.is_none()
            }
        }
    }
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
