//! [`Job`]: a payload bound to a queue.

use serde::{Serialize, de::DeserializeOwned};

use crate::{QueueSet, RetryPolicy};

/// A serializable unit of work that always travels on the same queue.
///
/// Usually derived:
///
/// ```
/// # use queuey_rabbitmq::prelude::*;
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
/// # enum Queue { Emails }
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(queue = Queue::Emails, name = "welcome", retry(max_attempts = 5))]
/// struct Welcome { user: u64 }
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The queue set the job belongs to; producers and workers are pinned to one set.
    type Queue: QueueSet;
    /// Routes the job to its handler; travels on the wire as `job_type`.
    const NAME: &'static str;
    /// The queue the job is enqueued on.
    const QUEUE: Self::Queue;
    /// Earlier values of [`NAME`](Self::NAME) under which jobs may still be in flight.
    const ALIASES: &'static [&'static str] = &[];

    /// The job's own retry policy; `None` takes the queue's.
    fn retry_policy() -> Option<RetryPolicy> {
        None
    }
}
