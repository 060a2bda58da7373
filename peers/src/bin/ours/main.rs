//! `bench-ours`: this library, at its defaults.

mod enqueue;
mod latency;
mod work;

use std::time::Duration;

use peers::bench::{Failure, Mail, Request};
use queuey_rabbitmq::prelude::*;

/// The queue that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Queue {
    Asked,
}

impl QueueSet for Queue {
    fn all() -> &'static [Self] {
        &[Self::Asked]
    }

    fn name(&self) -> &'static str {
        Request::get().queue()
    }

    fn config(&self) -> QueueConfig {
        QueueConfig::new(self.name())
            .prefetch(Request::get().prefetch())
            .max_priority(Request::get().priorities())
            .retry(RetryPolicy::fixed(3, Duration::from_secs(1)))
    }
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Asked, name = "mail")]
#[serde(transparent)]
struct Letter(Mail);

async fn connect() -> Result<RabbitMqBackend, Error> {
    RabbitMqBackend::connect(Request::get().url.as_str()).await
}

fn main() -> Result<(), Failure> {
    let request = Request::get();
    Request::answer(Runtime::default().block_on(async {
        match request.scenario.as_str() {
            "enqueue" => enqueue::tasks(request).await,
            "enqueue_all" => enqueue::all(request).await,
            "drain" => work::drain(request).await,
            "retry" => work::retry(request).await,
            "idle" => work::idle(request).await,
            "latency" => latency::measure(request).await,
            other => Err(format!("no scenario {other}").into()),
        }
    }))
}
