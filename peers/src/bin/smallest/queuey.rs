//! The same as `ours.rs` with the published queuey.

use queuey::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    Emails,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Emails, name = "welcome")]
struct Welcome {
    user: u64,
}

fn main() -> queuey::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let url = std::env::var("AMQP_URL").unwrap_or("amqp://localhost".into());
        let backend = Arc::new(RabbitMqBackend::connect(&url).await?);
        let worker = Worker::<Queue, _>::builder(backend)
            .handler(FnHandler::new(async |job: Welcome, _: JobContext| {
                println!("welcome {}", job.user);
                Ok(())
            }))
            .build()
            .await?;
        worker.run().await
    })
}
