//! The promises of the worker, on the memory backend.

/// A job type that carries a number; jobs on `Other` have two attempts, the rest one.
macro_rules! job {
    ($job:ident, $queue:ident, $name:literal $(, $item:item)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) struct $job(pub(crate) u32);

        impl Job for $job {
            type Queue = $crate::Queue;
            const NAME: &'static str = $name;
            const QUEUE: $crate::Queue = $crate::Queue::$queue;
            $($item)*
        }
    };
}

mod concurrency;
mod crash;
mod failure;
mod fault;
mod hook;
mod lines;
#[path = "../support/lines.rs"]
mod log_lines;
mod lost_ack;
mod outcome;
mod panic;
mod policy;
mod redelivery;
mod registry;
mod script;
mod settle;
mod shutdown;
mod stop;

use std::{future::Future, sync::Once, time::Duration};

use async_io::Timer;
use futures_lite::future;
use queuey_rabbitmq::{
    Backend, Envelope, Job, MemoryBackend, Producer, QueueConfig, QueueSet, Report, RetryPolicy,
    Worker, WorkerBuilder,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Queue {
    Main,
    Other,
    Flat,
}

impl QueueSet for Queue {
    fn all() -> &'static [Self] {
        &[Self::Main, Self::Other, Self::Flat]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Other => "other",
            Self::Flat => "flat",
        }
    }

    fn config(&self) -> QueueConfig {
        let queue = QueueConfig::new(self.name());
        match self {
            Self::Main => queue.prefetch(8),
            Self::Other => queue.prefetch(3).retry(RetryPolicy::fixed(2, SECOND)),
            Self::Flat => queue.prefetch(1).max_priority(0),
        }
    }
}

job!(Work, Main, "work");
job!(Twice, Other, "twice");
job!(Flat, Flat, "flat");
job!(
    Often,
    Other,
    "often",
    const ALIASES: &'static [&'static str] = &["frequent", "again"];,
    fn retry_policy() -> Option<RetryPolicy> {
        Some(RetryPolicy::fixed(5, SECOND))
    }
);

/// Three attempts, a second apart.
fn thrice() -> RetryPolicy {
    RetryPolicy::fixed(3, SECOND)
}

fn builder(backend: &MemoryBackend) -> WorkerBuilder<Queue, MemoryBackend> {
    Worker::builder(backend.clone())
}

async fn enqueue<J: Job<Queue = Queue>>(
    backend: &MemoryBackend,
    jobs: impl IntoIterator<Item = J>,
) {
    let producer = Producer::new_undeclared(backend.clone());
    for job in jobs {
        producer.enqueue(&job).await.unwrap();
    }
}

fn raw(job_type: &str, queue: &str, payload: &str) -> Envelope {
    let payload = RawValue::from_string(payload.into()).unwrap();
    Envelope::raw(job_type, queue, payload)
}

/// Runs `worker` while `script` lasts, then stops it.
async fn during<B: Backend>(worker: Worker<Queue, B>, script: impl Future<Output = ()>) -> Report {
    let handle = worker.handle();
    let script = async {
        script.await;
        handle.shutdown();
    };
    let (report, ()) = within(future::zip(worker.run(), script)).await;
    report.unwrap()
}

/// Runs `worker` until no job is left, its clock leaping from one due job to the next.
async fn drain<B: Backend>(worker: Worker<Queue, B>, backend: &MemoryBackend) -> Report {
    during(worker, async {
        loop {
            backend.idle().await;
            let held = Queue::all().iter().flat_map(|it| backend.held(it.name()));
            match held.map(|(_, delay)| delay).min() {
                Some(delay) => backend.advance(delay),
                None => break,
            }
        }
    })
    .await
}

/// Waits until `met`.
async fn until(met: impl Fn() -> bool) {
    within(async {
        while !met() {
            Timer::after(Duration::from_millis(1)).await;
        }
    })
    .await;
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    future::or(work, async {
        Timer::after(Duration::from_secs(20)).await;
        panic!("nothing came in 20 s");
    })
    .await
}

/// Keeps the intended panics of handlers, all on the executor's threads, off the screen.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            if !thread
                .name()
                .is_some_and(|it| it.starts_with("async-global-executor"))
            {
                shown(panic);
            }
        }));
    });
}

/// Runs each fact on a thread of its own.
#[macro_export]
macro_rules! facts {
    ($($(#[$meta:meta])* async fn $name:ident($backend:ident) $body:block)*) => {
        $($(#[$meta])* #[test] fn $name() {
            $crate::hush();
            let $backend = queuey_rabbitmq::MemoryBackend::with_manual_clock();
            futures_lite::future::block_on($crate::within(async $body));
        })*
    };
}
