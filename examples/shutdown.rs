//! A worker that gets SIGTERM finishes what runs and gives back what has not started.
//!
//! A second SIGTERM, or Ctrl-C, would give back what runs too.

use std::{process::Command, time::Duration};

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
            while starts.recv().await != Ok(2) {}
            println!("shutting down");
            if !terminate() {
                // No signals on this system: the program ends its worker itself.
                handle.shutdown();
            }
        };
        let run = worker.run_until_signal();
        let (report, ()) = futures_lite::future::zip(run, operator).await;

        let (done, left) = (report?.counts.succeeded, backend.pending("videos").len());
        println!("{done} done, {left} back in the queue");
        Ok(())
    })
}

/// Does to this process what Kubernetes, systemd and Docker do to stop one.
fn terminate() -> bool {
    let kill = ["-c", "kill -s TERM $PPID"];
    let sent = Command::new("sh").args(kill).status();
    cfg!(unix) && sent.is_ok_and(|status| status.success())
}
