//! The benchmark: `bench` starts `bench-ours`, `bench-queuey` and `bench-raw` in turn.
//!
//! Each start is one [`Request`] in a process of its own and ends with one line of JSON, a
//! [`Figures`].

mod drain;
mod mail;
mod meter;
mod request;
#[cfg(feature = "raw")]
pub mod wire;

pub use drain::Drain;
pub use mail::{JOB_TYPE, Latencies, Mail};
pub use meter::{Figures, Meter};
pub use request::Request;

/// Anything that ends a program of the benchmark.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
