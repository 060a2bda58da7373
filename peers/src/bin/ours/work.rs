//! Workers: with a full queue, with jobs that fail once, and with nothing to do.

use std::{sync::Arc, time::Duration};

use async_io::Timer;
use futures_lite::future;
use peers::bench::{Drain, Failure, Figures, Meter, Request};
use queuey_rabbitmq::prelude::*;

use crate::{Letter, Queue, connect};

/// No-op jobs, as many as lie on the queue.
pub(crate) async fn drain(request: &Request) -> Result<Figures, Failure> {
    work(request, false).await
}

/// Jobs that fail once.
pub(crate) async fn retry(request: &Request) -> Result<Figures, Failure> {
    work(request, true).await
}

async fn work(request: &Request, fails_once: bool) -> Result<Figures, Failure> {
    let jobs = request.jobs();
    let drain = Arc::new(Drain::of(jobs));
    let seen = drain.clone();
    let worker = Worker::<Queue, _>::builder(connect().await?)
        .handler_fn(move |_: Letter, ctx: JobContext| {
            let seen = seen.clone();
            async move {
                seen.starts();
                if fails_once && ctx.attempt == 1 {
                    return Err(JobError::retryable("busy"));
                }
                seen.done();
                Ok(())
            }
        })
        .close_backend_on_shutdown(true)
        .build()
        .await?;
    let handle = worker.handle();
    let watch = async {
        drain.all_done().await;
        // The last ones have run; they are counted when they are acked.
        while handle.counts().succeeded < jobs {
            Timer::after(Duration::from_micros(200)).await;
        }
        let figures = drain.figures();
        handle.shutdown();
        figures
    };
    let (report, figures) = future::zip(worker.run(), watch).await;
    report?;
    figures
}

/// An empty queue.
pub(crate) async fn idle(request: &Request) -> Result<Figures, Failure> {
    let worker = Worker::<Queue, _>::builder(connect().await?)
        .handler_fn(async |_: Letter, _: JobContext| Ok(()))
        .close_backend_on_shutdown(true)
        .build()
        .await?;
    let handle = worker.handle();
    let watch = async {
        // The start is not idleness.
        Timer::after(Duration::from_secs(1)).await;
        let meter = Meter::start();
        Timer::after(Duration::from_secs(request.seconds())).await;
        let figures = meter.stop(1);
        handle.shutdown();
        figures
    };
    let (report, figures) = future::zip(worker.run(), watch).await;
    report?;
    figures
}
