//! `bench-queuey`: the published queuey 1.1, at its defaults unless told otherwise.

mod enqueue;
mod latency;
mod watched;
mod work;

use std::time::Duration;

use peers::bench::{Failure, Mail, Request};
use queuey::prelude::*;

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

async fn connect() -> queuey::Result<Arc<RabbitMqBackend>> {
    let request = Request::get();
    let options = queuey::RabbitMqOptions::default();
    let default = options.publish_concurrency as u64;
    let options = options.publish_concurrency(request.number("channels", default));
    let backend = RabbitMqBackend::with_options(&request.url, options).await?;
    Ok(Arc::new(backend))
}

fn main() -> Result<(), Failure> {
    let request = Request::get();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    Request::answer(runtime.block_on(async {
        match request.scenario.as_str() {
            "enqueue" => enqueue::tasks(request).await,
            "drain" => work::drain(request).await,
            "retry" => work::retry(request).await,
            "idle" => work::idle(request).await,
            "latency" => latency::measure(request).await,
            other => Err(format!("no scenario {other}").into()),
        }
    }))
}
