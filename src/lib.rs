//! Typed background jobs on RabbitMQ, for any async runtime.
//!
//! A [`Job`] is a serializable type bound to one queue of a [`QueueSet`]. A [`Producer`] enqueues
//! jobs on a [`Backend`]; a [`Worker`] runs them with a [`JobHandler`] per type. The backend is
//! [`RabbitMqBackend`], or [`MemoryBackend`] in tests and without a broker.
//!
//! ```
//! use queuey_rabbitmq::prelude::*;
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
//! enum Queue {
//!     #[queue(retry(max_attempts = 5))]
//!     Emails,
//! }
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(queue = Queue::Emails, name = "welcome")]
//! struct Welcome { user: u64 }
//!
//! # Runtime::default().block_on(async {
//! let backend = MemoryBackend::new(); // or RabbitMqBackend::connect("amqp://localhost").await?
//! let producer = Producer::new(backend.clone()).await?;
//! producer.enqueue(&Welcome { user: 7 }).await?;
//!
//! let worker = Worker::builder(backend.clone())
//!     .handler_fn(async |job: Welcome, ctx: JobContext| {
//!         println!("welcome {}, attempt {}", job.user, ctx.attempt);
//!         Ok(())
//!     })
//!     .build()
//!     .await?;
//! let handle = worker.handle();
//! # let running = worker.run();
//! # let stop = async { backend.idle().await; handle.shutdown(); Ok(()) };
//! # let (report, ()) = futures_lite::future::try_zip(running, stop).await?;
//! # assert_eq!(report.counts.succeeded, 1);
//! # Ok::<(), Error>(()) }).unwrap();
//! ```
//!
//! Jobs run **at least once**: a successor (retry, deferral, dead letter) is stored before its
//! original is acked, so a crash in between repeats work and loses none. Nothing runs before its
//! delay has passed. README.md has the guarantees in a table, ARCHITECTURE.md the reasons.
//!
//! # Features
//!
//! | feature | what |
//! |---|---|
//! | `async-global-executor` (default), `smol`, `tokio` | runtimes; see [`Runtime`] |
//! | `rustls` (default) | TLS by `rustls-ring` with `rustls-native-certs`; builds without CMake |
//! | `rustls-aws-lc-rs`, `rustls-platform-verifier`, `rustls-webpki-roots`, `native-tls`, `openssl`, `openssl-vendored` | other TLS stacks and roots |
//! | `signals` | [`Worker`] has `run_until_signal`: SIGTERM and Ctrl-C end it in stages |
//! | `cli` | the program `queuey`, and `admin`, which it is made of |
//! | `queuey-core` | [`RabbitMqBackend`] also serves the published `queuey_core::Backend` |

// The generated code of the derives names this crate from outside; inside, it is itself.
extern crate self as queuey_rabbitmq;

// The words, in reading order: pure, no async, no locks, no log.
mod backoff;
mod cause;
mod envelope;
mod error;
mod failure;
mod job;
mod limits;
mod queue;
mod retry;
// The contract.
mod backend;
mod dead_letter;
mod handler;
mod health;
mod latch;
// Sending and working.
mod producer;
mod worker;
// The transports, and where everything runs.
mod memory;
mod rabbitmq;
mod runtime;

pub use backend::{Backend, Delivery, Settled, Unsettled};
pub use backoff::Backoff;
pub use cause::Cause;
pub use dead_letter::{DeadLetter, DeadLetterHook, FnDeadLetterHook};
pub use envelope::Envelope;
pub use error::{BoxError, Chain, Error, JobError, Result};
pub use failure::{DeadLetterCause, FailedAttempt, Failure, FailureKind};
pub use handler::{FnHandler, JobContext, JobHandler};
pub use health::{QueueHealth, SubscriptionWatch};
pub use job::Job;
pub use lapin;
pub use memory::{AckKind, MemoryBackend, MemoryCounts, MemoryDeliveries, MemoryDelivery};
pub use producer::{EnqueueOptions, Producer};
pub use queue::{DEFAULT_MAX_PRIORITY, QueueConfig, QueueKind, QueueSet};
pub use queuey_rabbitmq_derive::{Job, Queues};
#[cfg(feature = "cli")]
pub use rabbitmq::admin;
pub use rabbitmq::{
    Address, Addresses, Attempt, BackoffPolicy, RabbitMqBackend, RabbitMqDeliveries,
    RabbitMqDelivery, RabbitMqOptions, Rebuilding, ReconnectPolicy, Tls, codec, hold, ladder,
    topology,
};
pub use retry::{RetryDecision, RetryPolicy};
pub use runtime::Runtime;
pub use uuid::Uuid;
pub use worker::{Counts, Report, StopReason, Worker, WorkerBuilder, WorkerHandle};

/// The names most programs use.
pub mod prelude {
    pub use crate::{
        AckKind, Backend, Backoff, DeadLetter, DeadLetterCause, DeadLetterHook, Delivery,
        EnqueueOptions, Envelope, Error, Failure, Job, JobContext, JobError, JobHandler,
        MemoryBackend, Producer, QueueConfig, QueueKind, QueueSet, Queues, RabbitMqBackend,
        RabbitMqOptions, Report, RetryPolicy, Runtime, Worker, WorkerBuilder, WorkerHandle,
    };
    pub use serde::{Deserialize, Serialize};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
