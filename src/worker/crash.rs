//! What is to become of a job that may have ended the process which had it.

use std::time::Duration;

use super::{fault::Fault, outcome::Outcome, plan::Rules, settle::Ending};
use crate::{Delivery, QueueConfig};

/// Well above the attempts jobs have by default, since restarts count as well.
pub(super) const LIMIT: u32 = 10;

/// From this many crashes on a job is kept apart from those that were in hand beside it; what comes
/// before may well be a restart, and is not to wait.
const SUSPECT: u32 = 3;
/// The longest wait is drawn from 2 to the power of this, in seconds.
const MOST_DOUBLINGS: u32 = 6;

/// How the turn of this job ends, unless it is to be run.
pub(super) fn instead_of_running<D: Delivery>(
    delivery: &D,
    queue: &QueueConfig,
    limit: Option<u32>,
) -> Option<Ending> {
    let crashes = delivery.crashes();
    let limit = limit.filter(|_| crashes > 0)?;
    let outcome = if crashes >= limit.max(1) {
        Outcome::CrashLoop(Fault::new(format!(
            "crash loop: handed out {crashes} times, and whoever had it ended without an answer"
        )))
    } else {
        let delay = (crashes >= SUSPECT).then(|| apart(crashes));
        let counted = delivery.envelope().crashes() == crashes;
        if counted || (delay.is_none() && delivery.crashes_are_kept()) {
            return None;
        }
        Outcome::Uncounted { crashes, delay }
    };
    let rules = Rules {
        policy: None,
        top_priority: queue.max_priority.unwrap_or(0),
    };
    Some(Ending::new(outcome, rules))
}

/// A wait that the jobs crashed together do not share.
fn apart(crashes: u32) -> Duration {
    let most = Duration::from_secs(1 << crashes.min(MOST_DOUBLINGS));
    most.mul_f64(fastrand::f64())
}
