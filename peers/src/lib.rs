//! Nothing but tests: what other job queues and this one make of each other.
