//! What other job queues and this one make of each other: tests, and what the programs of the
//! benchmark share.

#[cfg(feature = "measure")]
pub mod bench;
