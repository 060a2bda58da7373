//! Typed background jobs on RabbitMQ, for any async runtime.

// The generated code of the derives names this crate from outside; inside, it is itself.
extern crate self as queuey_rabbitmq;

mod backend;
mod backoff;
mod envelope;
mod error;
mod job;
mod queue;
mod retry;

pub use backend::{Backend, Delivery, Settled, Unsettled};
pub use backoff::Backoff;
pub use envelope::Envelope;
pub use error::{BoxError, Chain, Error, JobError, Result};
pub use job::Job;
pub use queue::{DEFAULT_MAX_PRIORITY, QueueConfig, QueueKind, QueueSet};
pub use queuey_rabbitmq_derive::{Job, Queues};
pub use retry::{RetryDecision, RetryPolicy};

/// The names most programs use.
pub mod prelude {
    pub use crate::{
        Backend, Backoff, Delivery, Envelope, Error, Job, JobError, QueueConfig, QueueKind,
        QueueSet, Queues, RetryPolicy,
    };
    pub use serde::{Deserialize, Serialize};
}
