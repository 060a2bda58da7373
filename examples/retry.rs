//! A job that fails is tried again with growing delays; the attempts used up, it is dead.

use std::time::{Duration, Instant};

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    #[queue(retry(max_attempts = 4, base = "100ms", factor = 2, jitter = false))]
    Payments,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Payments, name = "charge")]
struct Charge {
    cents: u64,
}

struct Bank {
    opened: Instant,
}

impl JobHandler for Bank {
    type Job = Charge;

    async fn handle(&self, job: Charge, ctx: JobContext) -> Result<(), JobError> {
        let after = self.opened.elapsed().as_millis() / 100 * 100;
        println!("attempt {} after about {after} ms", ctx.attempt);
        // Retryable: `?` on any error.
        let cents: u8 = job.cents.try_into()?;
        println!("charged {cents} cents");
        Ok(())
    }

    /// Small amounts are not worth four attempts.
    fn set_retry_policy(&self, job: &Charge) -> Option<RetryPolicy> {
        (job.cents < 1000).then(|| RetryPolicy::fixed(2, Duration::from_millis(50)))
    }
}

fn main() -> Result<(), Error> {
    Runtime::default().block_on(async {
        let backend = MemoryBackend::new();
        let producer = Producer::new(backend.clone()).await?;
        producer.enqueue(&Charge { cents: 5000 }).await?;

        let bank = Bank {
            opened: Instant::now(),
        };
        let worker = Worker::builder(backend.clone())
            .handler(bank)
            .build()
            .await?;
        let handle = worker.handle();
        let stop = async {
            backend.idle().await;
            handle.shutdown();
        };
        let (report, ()) = futures_lite::future::zip(worker.run(), stop).await;

        println!("retried {} times, then:", report?.counts.retried);
        for (envelope, reason) in backend.dead_letters("payments") {
            println!("dead after attempt {}: {reason}", envelope.attempt);
        }
        Ok(())
    })
}
