//! Workers: with a full queue, with jobs that fail once, and with nothing to do.

use std::time::Duration;

use peers::bench::{Drain, Failure, Figures, Meter, Request};
use queuey::{Backend, prelude::*};
use tokio::time::sleep;

use crate::{Letter, Queue, connect, watched::Watched};

/// No-op jobs, as many as lie on the queue.
pub(crate) async fn drain(request: &Request) -> Result<Figures, Failure> {
    work(request, false).await
}

/// Jobs that fail once.
pub(crate) async fn retry(request: &Request) -> Result<Figures, Failure> {
    work(request, true).await
}

async fn work(request: &Request, fails_once: bool) -> Result<Figures, Failure> {
    let drain = Arc::new(Drain::of(request.jobs()));
    let seen = drain.clone();
    let backend = Arc::new(Watched {
        backend: connect().await?,
        drain: drain.clone(),
    });
    let worker = Worker::<Queue, _>::builder(backend.clone())
        .handler(FnHandler::new(move |_: Letter, ctx: JobContext| {
            let seen = seen.clone();
            async move {
                seen.starts();
                if fails_once && ctx.attempt == 1 {
                    return Err(JobError::retryable_msg("busy"));
                }
                Ok(())
            }
        }))
        .build()
        .await?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    drain.all_done().await;
    let figures = drain.figures();
    handle.shutdown();
    running.await??;
    backend.close().await?;
    figures
}

/// An empty queue.
pub(crate) async fn idle(request: &Request) -> Result<Figures, Failure> {
    let worker = Worker::<Queue, _>::builder(connect().await?)
        .handler(FnHandler::new(async |_: Letter, _: JobContext| Ok(())))
        .close_backend_on_shutdown(true)
        .build()
        .await?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    // The start is not idleness.
    sleep(Duration::from_secs(1)).await;
    let meter = Meter::start();
    sleep(Duration::from_secs(request.seconds())).await;
    let figures = meter.stop(1);
    handle.shutdown();
    running.await??;
    figures
}
