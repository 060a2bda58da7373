//! Enqueueing: tasks that share a producer, and streams of jobs.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use futures_lite::StreamExt;
use peers::bench::{Failure, Figures, Mail, Meter, Request};
use queuey_rabbitmq::prelude::*;

use crate::{Letter, Queue, connect};

type Producer = queuey_rabbitmq::Producer<Queue, RabbitMqBackend>;

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
            async_global_executor::spawn(async move {
                while taken.fetch_add(1, Ordering::Relaxed) < jobs {
                    producer.enqueue(&Letter(Mail::new())).await?;
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    Ok(())
}

/// `enqueue_all`, batch after batch.
pub(crate) async fn all(request: &Request) -> Result<Figures, Failure> {
    let backend = connect().await?;
    let producer = Producer::new(backend.clone()).await?;
    let batch = request.number("batch", 1000);
    batches(&producer, batch, batch).await?;
    let meter = Meter::start();
    batches(&producer, request.jobs(), batch).await?;
    let figures = meter.stop(request.jobs())?;
    backend.close().await?;
    Ok(figures)
}

async fn batches(producer: &Producer, jobs: u64, batch: u64) -> Result<(), Failure> {
    let mut left = jobs;
    while left > 0 {
        let now = left.min(batch);
        let verdicts = producer.enqueue_all((0..now).map(|_| Letter(Mail::new())));
        let mut verdicts = std::pin::pin!(verdicts);
        while let Some(verdict) = verdicts.next().await {
            verdict?;
        }
        left -= now;
    }
    Ok(())
}
