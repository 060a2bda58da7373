//! [`Cause`]: what ended a job, said by the worker or the broker.

use clap::ValueEnum;
use queuey_rabbitmq::{DeadLetterCause, admin::Letter};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cause {
    /// Its attempts are used up
    Exhausted,
    /// The handler called it fatal
    Fatal,
    /// Its payload is not what its type says
    Decode,
    /// No worker has a handler for its type
    NoHandler,
    /// It could not be retried or deferred
    Refused,
    /// Too many workers crashed while they had it
    CrashLoop,
    /// The body is no job
    Malformed,
    /// Given back too often, as by workers that crash; the broker's doing
    DeliveryLimit,
    /// Longer on its queue than its time to live; the broker's doing
    Expired,
    /// Its queue was full; the broker's doing
    Maxlen,
    /// Rejected by a consumer; the broker's doing
    Rejected,
}

impl Cause {
    pub(crate) fn of(letter: &Letter) -> Option<Self> {
        let Some(job) = &letter.envelope else {
            return Some(Self::Malformed);
        };
        match job.failure().and_then(|failure| failure.cause) {
            Some(DeadLetterCause::Exhausted) => Some(Self::Exhausted),
            Some(DeadLetterCause::Fatal) => Some(Self::Fatal),
            Some(DeadLetterCause::Decode) => Some(Self::Decode),
            Some(DeadLetterCause::NoHandler) => Some(Self::NoHandler),
            Some(DeadLetterCause::Refused) => Some(Self::Refused),
            Some(DeadLetterCause::CrashLoop) => Some(Self::CrashLoop),
            _ => match &*letter.brokers_reason()? {
                "delivery_limit" => Some(Self::DeliveryLimit),
                "expired" => Some(Self::Expired),
                "maxlen" => Some(Self::Maxlen),
                "rejected" => Some(Self::Rejected),
                _ => None,
            },
        }
    }

    /// As it is written on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().into())
    }
}
