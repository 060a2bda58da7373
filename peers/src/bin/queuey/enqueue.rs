//! Enqueueing by tasks that share a producer.

use std::sync::atomic::{AtomicU64, Ordering};

use peers::bench::{Failure, Figures, Mail, Meter, Request};
use queuey::{Backend, prelude::*};

use crate::{Letter, Queue, connect};

type Producer = queuey::Producer<Queue, RabbitMqBackend>;

/// Tasks that share one producer, each with one job on its way at a time; one is a loop.
pub(crate) async fn tasks(request: &Request) -> Result<Figures, Failure> {
    let backend = connect().await?;
    let producer = Producer::new(backend.clone()).await?;
    spread(&producer, request.tasks(), request.tasks()).await?;
    let meter = Meter::start();
    spread(&producer, request.tasks(), request.jobs()).await?;
    let figures = meter.stop(request.jobs())?;
    backend.close().await?;
    Ok(figures)
}

async fn spread(producer: &Producer, tasks: u64, jobs: u64) -> Result<(), Failure> {
    if tasks == 1 {
        for _ in 0..jobs {
            producer.enqueue(&Letter(Mail::new())).await?;
        }
        return Ok(());
    }
    let taken = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let (producer, taken) = (producer.clone(), taken.clone());
            tokio::spawn(async move {
                while taken.fetch_add(1, Ordering::Relaxed) < jobs {
                    producer.enqueue(&Letter(Mail::new())).await?;
                }
                Ok::<_, queuey::Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}
