//! [`QueueHealth`]: whether a worker gets the jobs of a queue, for its health endpoint.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::Error;

/// Whether a worker gets the jobs of a queue.
///
/// A loss is noticed when the worker asks for a job: one that runs as many as it may hears of it when
/// the first of them has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueHealth {
    /// Which queue.
    pub queue: String,
    /// Whether it is subscribed to. Otherwise the worker waits for it, or has not begun to.
    pub subscribed: bool,
    /// Why the subscription was lost or could not be made again, until it is.
    pub trouble: Option<String>,
    /// How often it was made again.
    pub resubscribed: u64,
    /// When its last job came.
    pub last_delivery: Option<Instant>,
}

/// Where a backend tells what becomes of a subscription. Clones tell the same.
#[derive(Debug, Clone)]
pub struct SubscriptionWatch(Arc<Mutex<QueueHealth>>);

impl SubscriptionWatch {
    /// A watch over a subscription to `queue` that is to be made.
    pub fn new(queue: impl Into<String>) -> Self {
        Self(Arc::new(Mutex::new(QueueHealth {
            queue: queue.into(),
            subscribed: false,
            trouble: None,
            resubscribed: 0,
            last_delivery: None,
        })))
    }

    /// It is made, for the first time or again.
    pub fn subscribed(&self) {
        let mut health = self.locked();
        health.resubscribed += u64::from(health.trouble.take().is_some());
        health.subscribed = true;
    }

    /// It is lost, or could not be made again.
    pub fn lost(&self, why: &Error) {
        let mut health = self.locked();
        health.subscribed = false;
        health.trouble = Some(why.chain().to_string());
    }

    /// What is known now.
    pub fn health(&self) -> QueueHealth {
        self.locked().clone()
    }

    pub(crate) fn delivered(&self) {
        self.locked().last_delivery = Some(Instant::now());
    }

    fn locked(&self) -> MutexGuard<'_, QueueHealth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
