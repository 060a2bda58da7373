//! No broker needed: one job that succeeds, one that fails twice first, one that is deferred, and
//! one that ends as a dead letter.

use std::time::Duration;

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    #[queue(retry(max_attempts = 3, backoff = "fixed", delay = "200ms"))]
    Emails,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Emails, name = "welcome")]
struct Welcome {
    name: String,
}

async fn send(Welcome { name }: Welcome, ctx: JobContext) -> Result<(), JobError> {
    println!(
        "  {name}: attempt {} of {}, deferred {} times",
        ctx.attempt, ctx.max_attempts, ctx.deferrals
    );
    match name.as_str() {
        // Any error converts with `?`; the retry policy decides what follows.
        "Flaky" if ctx.attempt < 3 => Err(std::io::Error::other("mail server busy"))?,
        "Busy" if ctx.deferrals == 0 => Err(JobError::deferred(Duration::from_millis(300))),
        "Nobody" => Err(JobError::fatal("no such address")),
        _ => Ok(()),
    }
}

fn main() -> Result<(), Error> {
    Runtime::default().block_on(async {
        let backend = MemoryBackend::new();
        let producer = Producer::new(backend.clone()).await?;
        for name in ["Ada", "Flaky", "Busy", "Nobody"] {
            let job = Welcome { name: name.into() };
            producer.enqueue(&job).await?;
        }

        println!("Four jobs, one worker:");
        let worker = Worker::builder(backend.clone())
            .handler_fn(send)
            .build()
            .await?;
        let handle = worker.handle();
        let stop = async {
            backend.idle().await;
            handle.shutdown();
        };
        let (report, ()) = futures_lite::future::zip(worker.run(), stop).await;

        let counts = report?.counts;
        println!("\nWhat became of them:");
        println!("  succeeded      {}", counts.succeeded);
        println!("  retried        {}", counts.retried);
        println!("  deferred       {}", counts.deferred);
        println!("  dead-lettered  {}", counts.dead_lettered);
        for (envelope, reason) in backend.dead_letters("emails") {
            println!(
                "  dead: {} {}: {reason}",
                envelope.job_type, envelope.payload
            );
        }
        Ok(())
    })
}
