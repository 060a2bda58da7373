//! [`Fault`]: why a run failed, for the log and the reason as for the record.

use std::{error::Error, iter, process, sync::OnceLock, time::Duration};

use super::panic::Panic;
use crate::{
    Cause, Chain, DeadLetterCause, Envelope, Failure, FailureKind,
    envelope::now_ms,
    failure::{MOST_ITEMS, MOST_TEXT, ends},
    limits::cut,
};

/// Why a run failed. Errors are text already: whatever a user's type does is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// In words, the whole chain.
    pub(super) text: String,
    failure: Failure,
}

impl Fault {
    pub(super) fn new(text: impl Into<String>) -> Box<Self> {
        let text = text.into();
        // Cut at once: a megabyte is not to be kept twice.
        let mut failure = Failure::new(0, cut(&text, MOST_TEXT));
        failure.host = host().into();
        failure.pid = process::id();
        failure.failed_at_ms = now_ms();
        Box::new(Self { text, failure })
    }

    pub(super) fn of(cause: &Cause) -> Box<Self> {
        if let Some(told) = cause.downcast_ref() {
            return Self::told(told);
        }
        let mut fault = Self::of_error(&**cause);
        fault.failure.error_type = cause.type_name().map(Into::into);
        fault.failure.place = Some(cause.place().to_string());
        fault
    }

    pub(super) fn of_error(error: &(dyn Error + 'static)) -> Box<Self> {
        let mut fault = Self::new(Chain(error).to_string());
        let chain: Vec<&dyn Error> = iter::successors(Some(error), |&it| it.source()).collect();
        let chain = ends(&chain, MOST_ITEMS).map(|it| cut(&it.to_string(), MOST_TEXT).to_owned());
        fault.failure.chain = chain.collect();
        fault
    }

    /// What a handler tells of a failure somewhere else.
    fn told(told: &Failure) -> Box<Self> {
        let mut fault = Self::new(told.to_string());
        if let Some(told) = told.bounded() {
            fault.failure.kind = told.kind;
            fault.failure.error_type = told.error_type;
            fault.failure.chain = told.chain;
            fault.failure.place = told.place;
        }
        fault
    }

    /// `who`, which may be nobody, panicked.
    pub(super) fn panicked(who: &str, panic: &Panic) -> Box<Self> {
        let mut fault = Self::new(format!("{who}{panic}"));
        fault.failure.kind = FailureKind::Panic;
        fault.failure.chain = vec![cut(panic.text(), MOST_TEXT).into()];
        fault.failure.place = panic.place().map(Into::into);
        fault
    }

    pub(super) fn timed_out(limit: Duration) -> Box<Self> {
        let mut fault = Self::new(format!("timed out after {limit:?}"));
        fault.failure.kind = FailureKind::Timeout;
        fault
    }

    /// The same fault, told in other words.
    pub(super) fn in_words(&self, text: String) -> Box<Self> {
        let failure = self.failure.clone();
        Box::new(Self { text, failure })
    }

    /// What is known of `job` with this fault on top.
    pub(super) fn on_top_of(&self, job: &Envelope, cause: Option<DeadLetterCause>) -> Failure {
        let mut failure = self.failure.clone().after(job.failure());
        failure.attempt = job.attempt;
        failure.cause = cause;
        failure
    }
}

/// The name of this machine, asked for once.
fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        #[cfg(unix)]
        let name = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        #[cfg(not(unix))]
        let name = std::env::var("COMPUTERNAME").unwrap_or_default();
        name
    })
}
