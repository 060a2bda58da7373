//! [`Failure`]: what is known of how a job failed, for the next attempt and for its dead letter.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IntoDeserializer, value},
};

use crate::limits::cut;

/// How the last run of a job failed, and in short the runs before it.
///
/// Travels with the job beside its body, so that it never takes more than
/// [`MAX_BYTES`](Self::MAX_BYTES): texts are cut, and what has been longest is left out.
///
/// As the error of a handler, it tells of a failure elsewhere, in another process for instance: kind,
/// type, chain and place are recorded as they are, and the rest by the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The run that failed.
    pub attempt: u32,
    /// In which way.
    #[serde(default, deserialize_with = "known_or_error")]
    pub kind: FailureKind,
    /// The Rust type of the error, as [`std::any::type_name`] has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// The error and its sources, or what the panic said; of a long chain both ends.
    #[serde(default)]
    pub chain: Vec<String>,
    /// `file:line:column` of the panic, or of the `?` or call that made the error a
    /// [`JobError`](crate::JobError).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The machine it ran on.
    #[serde(default)]
    pub host: String,
    /// The process it ran in.
    #[serde(default)]
    pub pid: u32,
    /// Unix milliseconds of the first failure of the job.
    #[serde(default)]
    pub first_failed_at_ms: u64,
    /// Unix milliseconds of this failure.
    pub failed_at_ms: u64,
    /// What ended the job, in a dead letter.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known"
    )]
    pub cause: Option<DeadLetterCause>,
    /// The failures before this one, oldest first, as many as fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<FailedAttempt>,
}

/// A failure before the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The run that failed.
    pub attempt: u32,
    /// Unix milliseconds.
    pub at_ms: u64,
    /// The error and its sources in one line, or what the panic said.
    #[serde(default)]
    pub error: String,
}

/// In which way a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// With an error.
    #[default]
    Error,
    /// The handler panicked.
    Panic,
    /// The handler took too long.
    Timeout,
}

/// What ended a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeadLetterCause {
    /// Nothing is registered for its type.
    NoHandler,
    /// Its payload is not what its type says.
    Decode,
    /// The handler called it fatal.
    Fatal,
    /// Its attempts are used up.
    Exhausted,
    /// It could not be retried or deferred, whatever one does.
    Refused,
    /// Too many processes ended while they had it.
    CrashLoop,
}

impl DeadLetterCause {
    /// Whether the handler ever saw the job.
    pub fn reached_handler(self) -> bool {
        !matches!(self, Self::NoHandler | Self::Decode)
    }
}

/// What a text may take in bytes, and a list in items, is halved until the whole fits.
pub(crate) const MOST_TEXT: usize = 1024;
const LEAST_TEXT: usize = 16;
pub(crate) const MOST_ITEMS: usize = 16;

impl Failure {
    /// What a record takes at most, as JSON.
    pub const MAX_BYTES: usize = 8 * 1024;

    /// A failure with an error of these words; the rest is to be set.
    pub fn new(attempt: u32, error: impl Into<String>) -> Self {
        Self {
            attempt,
            kind: FailureKind::Error,
            error_type: None,
            chain: vec![error.into()],
            place: None,
            host: String::new(),
            pid: 0,
            first_failed_at_ms: 0,
            failed_at_ms: 0,
            cause: None,
            earlier: Vec::new(),
        }
    }

    /// The same as the next failure of a job that failed like `last` before.
    pub(crate) fn after(mut self, last: Option<&Self>) -> Self {
        self.first_failed_at_ms = self.failed_at_ms;
        if let Some(last) = last {
            self.first_failed_at_ms = last.first_failed_at_ms;
            self.earlier.clone_from(&last.earlier);
            self.earlier.push(FailedAttempt {
                attempt: last.attempt,
                at_ms: last.failed_at_ms,
                error: last.to_string(),
            });
        }
        self
    }

    /// As much of it as takes at most [`MAX_BYTES`](Self::MAX_BYTES).
    pub(crate) fn bounded(&self) -> Option<Self> {
        self.fit(Self::MAX_BYTES).map(|(failure, _)| failure)
    }

    /// As much of it as takes at most `limit` bytes of JSON, if anything does.
    pub(crate) fn to_json(&self, limit: usize) -> Option<String> {
        self.fit(limit).map(|(_, json)| json)
    }

    fn fit(&self, limit: usize) -> Option<(Self, String)> {
        let mut text = MOST_TEXT;
        while text >= LEAST_TEXT {
            let failure = self.cut(text);
            let json = serde_json::to_string(&failure).ok()?;
            if json.len() <= limit {
                return Some((failure, json));
            }
            text /= 2;
        }
        None
    }

    /// With texts of at most so many bytes, and lists in proportion.
    fn cut(&self, text: usize) -> Self {
        let items = (MOST_ITEMS * text / MOST_TEXT).max(1);
        let owned = |it: &String| cut(it, text).to_owned();
        let latest = self.earlier.len().saturating_sub(items);
        let earlier = self.earlier[latest..].iter().map(|it| FailedAttempt {
            error: cut(&it.error, text.div_ceil(4)).to_owned(),
            ..*it
        });
        Self {
            error_type: self.error_type.as_ref().map(owned),
            chain: ends(&self.chain, items).map(owned).collect(),
            place: self.place.as_ref().map(owned),
            host: owned(&self.host),
            earlier: earlier.collect(),
            ..*self
        }
    }
}

/// The error and its sources as `a: b: c`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain.join(": "))
    }
}

impl std::error::Error for Failure {}

/// At most so many of `all`: the first half of them and the last.
pub(crate) fn ends<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    let most = most.min(all.len());
    let (head, tail) = (most.div_ceil(2), all.len() - most / 2);
    all[..head].iter().chain(&all[tail..])
}

/// A word, unless a later version wrote one that this does not know.
fn known<'de, D: Deserializer<'de>, T: for<'any> Deserialize<'any>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    let known = |word: String| {
        let word: value::StringDeserializer<value::Error> = word.into_deserializer();
        T::deserialize(word).ok()
    };
    Ok(word.and_then(known))
}

fn known_or_error<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FailureKind, D::Error> {
    known(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn failure(chain: Vec<String>, earlier: Vec<String>, place: String) -> Failure {
        let earlier = earlier.into_iter().map(|error| FailedAttempt {
            attempt: u32::MAX,
            at_ms: u64::MAX,
            error,
        });
        Failure {
            chain,
            place: Some(place.clone()),
            error_type: Some(place.clone()),
            host: place,
            earlier: earlier.collect(),
            cause: Some(DeadLetterCause::Exhausted),
            ..Failure::new(u32::MAX, "")
        }
    }

    #[test]
    fn what_a_later_version_says_is_read_as_far_as_it_is_known() {
        let json =
            r#"{"attempt":1,"failed_at_ms":2,"kind":"abort","cause":"bored","colour":"red"}"#;

        let failure: Failure = serde_json::from_str(json).unwrap();

        assert_eq!((failure.kind, failure.cause), (FailureKind::Error, None));
        assert_eq!((failure.attempt, failure.failed_at_ms), (1, 2));
    }

    #[test]
    fn a_list_keeps_its_ends() {
        let all = [1, 2, 3, 4, 5];
        let ends = |most| ends(&all, most).copied().collect::<Vec<_>>();

        assert_eq!(
            [ends(0), ends(1), ends(4)],
            [vec![], vec![1], vec![1, 2, 4, 5]]
        );
        assert_eq!([ends(5), ends(9)], [all, all]);
    }

    #[test]
    fn the_smallest_frame_holds_a_failure() {
        let texts = || vec!["\u{1}".repeat(2_000); 20];
        let failure = failure(texts(), texts(), "ß".repeat(2_000));

        for limit in [1024, 4096, Failure::MAX_BYTES] {
            assert!(failure.to_json(limit).unwrap().len() <= limit);
        }
        assert_eq!(failure.to_json(100), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_fits_is_read_as_it_is_and_not_cut_again(
            chain in vec(".{0,1500}", 0..20), earlier in vec(".{0,300}", 0..20), place in ".*",
        ) {
            let failure = failure(chain, earlier, place);

            let bounded = failure.bounded().unwrap();

            let json = bounded.to_json(Failure::MAX_BYTES).unwrap();
            prop_assert!(json.len() <= Failure::MAX_BYTES);
            let read: Failure = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read, &bounded);
            prop_assert_eq!(failure.earlier.last().is_some(), read.earlier.last().is_some());
        }
    }
}
