//! A worker that is told to stop finishes what runs and gives back what has not started.

use std::time::Duration;

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    Videos,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Videos, name = "encode")]
struct Encode {
    id: u32,
}

fn main() -> Result<(), Error> {
    Runtime::default().block_on(async {
        let backend = MemoryBackend::new();
        let producer = Producer::new(backend.clone()).await?;
        for id in 1..=5 {
            producer.enqueue(&Encode { id }).await?;
        }

        let (started, starts) = async_channel::unbounded();
        let worker = Worker::builder(backend.clone())
            .handler_fn(move |Encode { id }, _| {
                let started = started.clone();
                async move {
                    println!("video {id} starts");
                    started.send(id).await?;
                    async_io::Timer::after(Duration::from_millis(100)).await;
                    println!("video {id} is done");
                    Ok(())
                }
            })
            .concurrency(2)
            .build()
            .await?;
        let handle = worker.handle();
        let operator = async {
            // A real program waits for SIGTERM here.
            while starts.recv().await != Ok(2) {}
            println!("shutting down");
            handle.shutdown();
        };
        let (report, ()) = futures_lite::future::zip(worker.run(), operator).await;

        let (done, left) = (report?.counts.succeeded, backend.pending("videos").len());
        println!("{done} done, {left} back in the queue");
        Ok(())
    })
}
