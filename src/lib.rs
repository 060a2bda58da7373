//! Typed background jobs on RabbitMQ, for any async runtime.

// The generated code of the derives names this crate from outside; inside, it is itself.
extern crate self as queuey_rabbitmq;

// The words, in reading order: pure, no async, no locks, no log.
mod backoff;
mod envelope;
mod error;
mod job;
mod queue;
mod retry;
// The contract.
mod backend;
mod dead_letter;
mod handler;
// Sending and working.
mod producer;
mod worker;
// The transports, and where everything runs.
mod memory;
mod rabbitmq;
mod runtime;

pub use backend::{Backend, Delivery, Settled, Unsettled};
pub use backoff::Backoff;
pub use dead_letter::{DeadLetter, DeadLetterCause, DeadLetterHook, FnDeadLetterHook};
pub use envelope::Envelope;
pub use error::{BoxError, Chain, Error, JobError, Result};
pub use handler::{FnHandler, JobContext, JobHandler};
pub use job::Job;
pub use lapin;
pub use memory::{AckKind, MemoryBackend, MemoryCounts, MemoryDeliveries, MemoryDelivery};
pub use producer::{EnqueueOptions, Producer};
pub use queue::{DEFAULT_MAX_PRIORITY, QueueConfig, QueueKind, QueueSet};
pub use queuey_rabbitmq_derive::{Job, Queues};
pub use rabbitmq::{
    Address, RabbitMqBackend, RabbitMqDeliveries, RabbitMqDelivery, RabbitMqOptions, Tls, codec,
    hold, topology,
};
pub use retry::{RetryDecision, RetryPolicy};
pub use runtime::Runtime;
pub use uuid::Uuid;
pub use worker::{Counts, Report, StopReason, Worker, WorkerBuilder, WorkerHandle};

/// The names most programs use.
pub mod prelude {
    pub use crate::{
        AckKind, Backend, Backoff, DeadLetter, DeadLetterCause, DeadLetterHook, Delivery,
        EnqueueOptions, Envelope, Error, Job, JobContext, JobError, JobHandler, MemoryBackend,
        Producer, QueueConfig, QueueKind, QueueSet, Queues, RabbitMqBackend, RabbitMqOptions,
        Report, RetryPolicy, Runtime, Worker, WorkerBuilder, WorkerHandle,
    };
    pub use serde::{Deserialize, Serialize};
}
