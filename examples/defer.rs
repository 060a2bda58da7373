//! A handler that is told to come back later says so; that is no failure, and the job returns ahead
//! of the backlog.

use std::time::Duration;

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    #[queue(prefetch = 1)]
    Requests,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Requests, name = "fetch")]
struct Fetch {
    page: u32,
}

async fn fetch(job: Fetch, ctx: JobContext) -> Result<(), JobError> {
    if job.page == 1 && ctx.deferrals == 0 {
        println!("page 1: rate limited, back in 50 ms");
        return Err(JobError::deferred_because(
            Duration::from_millis(50),
            "429 Retry-After",
        ));
    }
    println!(
        "page {}: attempt {}, priority {}",
        job.page, ctx.attempt, ctx.priority
    );
    // The work that lets a backlog build up.
    async_io::Timer::after(Duration::from_millis(20)).await;
    Ok(())
}

fn main() -> Result<(), Error> {
    Runtime::default().block_on(async {
        let backend = MemoryBackend::new();
        let producer = Producer::new(backend.clone()).await?;
        for page in 1..=6 {
            producer.enqueue(&Fetch { page }).await?;
        }

        let worker = Worker::builder(backend.clone())
            .handler_fn(fetch)
            .build()
            .await?;
        let handle = worker.handle();
        let stop = async {
            backend.idle().await;
            handle.shutdown();
        };
        let (report, ()) = futures_lite::future::zip(worker.run(), stop).await;

        let counts = report?.counts;
        println!(
            "{} done, {} deferral, no retry",
            counts.succeeded, counts.deferred
        );
        Ok(())
    })
}
