//! [`Error`], what a backend may answer, and [`JobError`], what a handler may.

use std::{any::Any, fmt, time::Duration};

use crate::Cause;

/// The result of everything but a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any cause, its type forgotten.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why the library could not do what it was asked.
///
/// The text says what was being done and to what; [`source`](std::error::Error::source) says why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A job did not turn into JSON.
    #[error("cannot serialize a job of type `{job_type}`")]
    Serialize {
        /// The job's name.
        job_type: String,
        /// What JSON cannot hold.
        source: serde_json::Error,
    },
    /// A delay was asked for on a queue this backend has not declared.
    #[error("cannot hold a job for `{0}`: declare the queue through this backend first")]
    UnknownQueue(String),
    /// The broker had no queue to route the message to; nothing was stored.
    #[error("cannot publish to `{queue}`: the broker has no such queue ({reply})")]
    Unroutable {
        /// The queue named.
        queue: String,
        /// The broker's words.
        reply: String,
    },
    /// The broker refused to store the message, for instance because the queue is full.
    #[error(
        "cannot publish to `{queue}`: the broker refused the message (nack; is the queue full, or its node away?)"
    )]
    Nacked {
        /// The queue named.
        queue: String,
    },
    /// The queue exists with other arguments.
    #[error(
        "cannot declare `{queue}`: it exists with another `{argument}`; drain and delete it, or configure the queue to match"
    )]
    Precondition {
        /// The queue that was declared.
        queue: String,
        /// The argument that differs.
        argument: String,
        /// The broker's words, with both values.
        source: BoxError,
    },
    /// A delay beyond what the broker can hold.
    #[error("cannot hold a job for `{queue}` for {delay:?}: the limit is {max:?}")]
    DelayTooLong {
        /// The queue to return to.
        queue: String,
        /// The delay asked for.
        delay: Duration,
        /// The longest possible.
        max: Duration,
    },
    /// A name that AMQP cannot carry.
    #[error("the name `{name}` is too long: {len} bytes, at most {max} fit")]
    NameTooLong {
        /// The name, or what it would become.
        name: String,
        /// Its length in bytes.
        len: usize,
        /// The most that fits.
        max: usize,
    },
    /// A message larger than the limit; nothing was sent.
    #[error("cannot publish to `{queue}`: the message has {size} bytes, the limit is {limit}")]
    PayloadTooLarge {
        /// The queue named.
        queue: String,
        /// Size of the message.
        size: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// The connection to the broker is gone.
    #[error("cannot {action} `{subject}`: the connection to the broker is gone")]
    Disconnected {
        /// What was being done.
        action: &'static str,
        /// The queue it was done to.
        subject: String,
        /// What ended the connection.
        source: BoxError,
    },
    /// No answer in time. A publish may be stored, now or later. Whoever would then enqueue the job
    /// again chooses its id first, with [`job_id`](crate::EnqueueOptions::job_id); its handler knows
    /// the two by it.
    #[error("cannot {action} `{subject}`: no answer within {limit:?}, the outcome is unknown")]
    TimedOut {
        /// What was being done.
        action: &'static str,
        /// The queue or address it was done to.
        subject: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The broker takes no publishes, for want of memory or disk, and did not in all that time. The
    /// job may be stored once it does; see [`TimedOut`](Self::TimedOut).
    #[error("cannot {action} `{queue}`: blocked by the broker for {limit:?} ({reason})")]
    Blocked {
        /// What was being done.
        action: &'static str,
        /// The queue it was done to.
        queue: String,
        /// How long was waited.
        limit: Duration,
        /// What the broker gives as its reason.
        reason: String,
    },
    /// The backend was closed.
    #[error("the backend is closed")]
    Closed,
    /// Two handlers claim one job name or alias.
    #[error("two handlers for job type `{0}`")]
    DuplicateHandler(String),
    /// The broker does not let this user in, or not do this.
    #[error("cannot {action} `{subject}`: access refused")]
    AccessRefused {
        /// What was being done.
        action: &'static str,
        /// The queue or address it was done to.
        subject: String,
        /// The broker's words.
        source: BoxError,
    },
    /// `amqps://` without a TLS stack in the build.
    #[error(
        "cannot connect to `{0}` with TLS: none is built in, enable the feature `rustls`, `native-tls` or `openssl`"
    )]
    TlsNotBuiltIn(String),
    /// An address that is not one.
    #[error("not an AMQP address: {0}")]
    Address(String),
    /// A subscription ended although nobody asked for it.
    #[error("the broker ended the subscription to `{0}`: was the queue deleted?")]
    ConsumerStopped(String),
    /// Anything else the broker, or the client library below, answered.
    #[error("cannot {action} `{subject}`")]
    Broker {
        /// What was being done.
        action: &'static str,
        /// The queue or address it was done to.
        subject: String,
        /// The answer.
        source: BoxError,
    },
}

impl Error {
    /// With every source.
    // Not inlined: each place would have the code of `Debug` and of the drop in its vtable.
    #[inline(never)]
    pub(crate) fn chain(&self) -> Chain<'_> {
        Chain(self)
    }

    /// An error of a third-party backend.
    pub fn broker(
        action: &'static str,
        subject: impl Into<String>,
        source: impl Into<BoxError>,
    ) -> Self {
        Self::Broker {
            action,
            subject: subject.into(),
            source: source.into(),
        }
    }

    /// Whether the same call can never succeed, however often it is repeated.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Serialize { .. }
                | Self::UnknownQueue(_)
                | Self::Precondition { .. }
                | Self::DelayTooLong { .. }
                | Self::NameTooLong { .. }
                | Self::PayloadTooLarge { .. }
                | Self::TlsNotBuiltIn(_)
        )
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// A handler's verdict on its own run.
///
/// Not an error type itself, so that `?` turns **any** error into [`Retryable`](Self::Retryable).
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// Failed; the retry policy decides.
    Retryable(Cause),
    /// Failed for good; dead-lettered at once.
    Fatal(Cause),
    /// Not failed: the same attempt again after `delay`.
    #[non_exhaustive]
    Deferred {
        /// How long to wait.
        delay: Duration,
        /// Why, for the log.
        reason: String,
    },
}

impl JobError {
    /// Failed with `error`, a text or any error; the retry policy decides.
    #[track_caller]
    pub fn retryable(error: impl Into<BoxError>) -> Self {
        Self::Retryable(Cause::from(error))
    }

    /// Failed for good with `error`, a text or any error.
    #[track_caller]
    pub fn fatal(error: impl Into<BoxError>) -> Self {
        Self::Fatal(Cause::from(error))
    }

    /// Not now: the same attempt again after `delay`.
    pub fn deferred(delay: Duration) -> Self {
        Self::deferred_because(delay, "deferred")
    }

    /// Not now, and why.
    pub fn deferred_because(delay: Duration, reason: impl Into<String>) -> Self {
        Self::Deferred {
            delay,
            reason: reason.into(),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for JobError {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::Retryable(Cause::from(error))
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retryable(error) => write!(f, "{}", Chain(&**error)),
            Self::Fatal(error) => write!(f, "fatal: {}", Chain(&**error)),
            Self::Deferred { delay, reason } => write!(f, "deferred for {delay:?}: {reason}"),
        }
    }
}

/// Displays an error and its sources as `a: b: c`.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// What a panic said, if that is a text.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}
