//! [`Envelope`]: what travels; a job's payload and all that is known about it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{Error, Failure, Job, QueueSet, Result};

/// What the fields beside the payload take in a body, mostly.
const FIELDS: usize = 256;

/// A job on its way: the message body, field for field, and beside it what is known of its last
/// failure.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Envelope {
    /// Stable over retries and deferrals.
    pub job_id: Uuid,
    /// [`Job::NAME`] of the payload.
    pub job_type: String,
    /// Where the job is published, and where it returns to.
    pub queue: String,
    /// The run this envelope stands for; 1 is the first.
    pub attempt: u32,
    /// Unix milliseconds of the first enqueue.
    pub enqueued_at_ms: u64,
    /// How often the job was deferred.
    #[serde(default)]
    pub deferrals: u32,
    /// Priority it is published with.
    #[serde(default)]
    pub priority: u8,
    /// What the caller ties the job to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The job as JSON.
    pub payload: Box<RawValue>,
    /// Beside the body: no job without a failure pays for it.
    #[serde(skip)]
    pub(crate) failure: Option<Arc<Failure>>,
    #[serde(skip)]
    pub(crate) crashes: u32,
}

impl Envelope {
    /// Wraps `job` for its first attempt, under a new random id.
    ///
    /// # Errors
    /// [`Error::Serialize`] when the job does not turn into JSON.
    pub fn new<J: Job>(job: &J) -> Result<Self> {
        let payload = serde_json::value::to_raw_value(job).map_err(|source| Error::Serialize {
            job_type: J::NAME.into(),
            source,
        })?;
        Ok(Self::raw(J::NAME, J::QUEUE.name(), payload))
    }

    /// Wraps a payload whose Rust type is not at hand.
    pub fn raw(
        job_type: impl Into<String>,
        queue: impl Into<String>,
        payload: Box<RawValue>,
    ) -> Self {
        Self {
            job_id: Uuid::new_v4(),
            job_type: job_type.into(),
            queue: queue.into(),
            attempt: 1,
            enqueued_at_ms: now_ms(),
            deferrals: 0,
            priority: 0,
            correlation_id: None,
            payload,
            failure: None,
            crashes: 0,
        }
    }

    /// Ties the job to something of the caller's.
    pub fn with_correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// How the last run failed, and those before it; `None` where nothing is known.
    ///
    /// Not in the body, and two envelopes that differ in it are equal.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }

    /// Sets how the last run failed, cut to [`Failure::MAX_BYTES`].
    pub fn with_failure(mut self, failure: &Failure) -> Self {
        self.failure = failure.bounded().map(Arc::new);
        self
    }

    /// How often this attempt was handed out to a process that ended without an answer, as far as
    /// that was counted; [`Delivery::crashes`](crate::Delivery::crashes) knows the last time too.
    ///
    /// Not in the body either.
    pub fn crashes(&self) -> u32 {
        self.crashes
    }

    /// The payload as `J`; does not compare [`job_type`](Self::job_type).
    pub fn decode<J: Job>(&self) -> serde_json::Result<J> {
        serde_json::from_str(self.payload.get())
    }

    /// The message body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(FIELDS + self.payload.get().len());
        serde_json::to_writer(&mut body, self)
            .expect("strings, integers and valid JSON always serialize");
        body
    }

    /// Reads a message body; unknown keys are ignored.
    pub fn from_bytes(body: &[u8]) -> serde_json::Result<Self> {
        // At once, and not string by string.
        let body = str::from_utf8(body).map_err(serde::de::Error::custom)?;
        serde_json::from_str(body)
    }

    /// The envelope of the next attempt, at priority 0.
    pub fn next_attempt(&self) -> Self {
        Self {
            attempt: self.attempt.saturating_add(1),
            priority: 0,
            crashes: 0,
            ..self.clone()
        }
    }

    /// The same envelope after so many crashes, returning at `priority`.
    pub(crate) fn crashed(&self, crashes: u32, priority: u8) -> Self {
        Self {
            crashes,
            priority,
            ..self.clone()
        }
    }

    /// The envelope of the same attempt, deferred once more and returning at `priority`.
    pub fn deferred(&self, priority: u8) -> Self {
        Self {
            deferrals: self.deferrals.saturating_add(1),
            priority,
            crashes: 0,
            ..self.clone()
        }
    }

    /// Time since the first enqueue; zero when the clocks disagree.
    pub fn age(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.enqueued_at_ms))
    }
}

impl PartialEq for Envelope {
    fn eq(&self, other: &Self) -> bool {
        let fields = |e: &Self| {
            (
                e.job_id,
                e.attempt,
                e.enqueued_at_ms,
                e.deferrals,
                e.priority,
            )
        };
        fields(self) == fields(other)
            && self.job_type == other.job_type
            && self.queue == other.queue
            && self.correlation_id == other.correlation_id
            && self.payload.get() == other.payload.get()
    }
}

/// Unix milliseconds; 0 when the clock stands before 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis().try_into().unwrap_or(u64::MAX))
}
