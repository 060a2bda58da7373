//! Producer and worker on a broker, `AMQP_URL` or the one on this machine.

use std::time::Duration;

use futures_lite::StreamExt;
use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
#[queues(prefix = "example")]
enum Queue {
    #[queue(retry(max_attempts = 3, backoff = "fixed", delay = "1s"))]
    Thumbnails,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Thumbnails, name = "thumbnail")]
struct Thumbnail {
    image: u32,
}

async fn draw(job: Thumbnail, ctx: JobContext) -> Result<(), JobError> {
    if job.image == 3 && ctx.attempt == 1 {
        return Err(JobError::retryable("disk full"));
    }
    println!("image {} drawn at attempt {}", job.image, ctx.attempt);
    Ok(())
}

fn main() -> Result<(), Error> {
    Runtime::default().block_on(async {
        let url = std::env::var("AMQP_URL").unwrap_or("amqp://localhost".into());
        let options = RabbitMqOptions::new().connection_name("thumbnails");
        let backend = RabbitMqBackend::with_options(url, options).await?;

        let producer = Producer::new(backend.clone()).await?;
        producer.enqueue(&Thumbnail { image: 1 }).await?;
        let soon = Duration::from_millis(500);
        producer
            .enqueue_after(&Thumbnail { image: 2 }, soon)
            .await?;
        // Many at once: pipelined, each with its own verdict.
        let mut verdicts = producer.enqueue_all((3..=10).map(|image| Thumbnail { image }));
        while let Some(verdict) = verdicts.next().await {
            println!("enqueued {}", verdict?);
        }

        let worker = Worker::builder(backend.clone())
            .handler_fn(draw)
            .close_backend_on_shutdown(true)
            .build()
            .await?;
        let handle = worker.handle();
        let stop = async {
            // A real program waits for Ctrl-C here.
            while handle.counts().succeeded < 10 {
                async_io::Timer::after(Duration::from_millis(10)).await;
            }
            handle.shutdown();
        };
        let (report, ()) = futures_lite::future::zip(worker.run(), stop).await;

        let counts = report?.counts;
        println!("{} done, {} retry", counts.succeeded, counts.retried);
        Ok(())
    })
}
