//! From the enqueue call to the start of the handler, at a steady 100 jobs a second.

use std::time::Duration;

use peers::bench::{Failure, Figures, Latencies, Mail, Meter, Request};
use queuey::prelude::*;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{Letter, Queue, connect};

/// One backend, a producer and a worker on it. The first second does not count.
pub(crate) async fn measure(request: &Request) -> Result<Figures, Failure> {
    let backend = connect().await?;
    let producer = Producer::<Queue, _>::new(backend.clone()).await?;
    let latencies = Arc::new(Latencies::default());
    let seen = latencies.clone();
    let worker = Worker::<Queue, _>::builder(backend)
        .handler(FnHandler::new(
            move |Letter(mail): Letter, _: JobContext| {
                seen.arrived(&mail);
                async { Ok(()) }
            },
        ))
        .close_backend_on_shutdown(true)
        .build()
        .await?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let jobs = 100 * request.seconds();
    let (meter, start) = (Meter::start(), Instant::now());
    for number in 0..jobs {
        sleep_until(start + Duration::from_millis(10 * number)).await;
        producer.enqueue(&Letter(Mail::new())).await?;
    }
    while latencies.count() < jobs {
        sleep(Duration::from_millis(1)).await;
    }
    // The last acks are on their way.
    sleep(Duration::from_millis(200)).await;
    let mut figures = meter.stop(jobs)?;
    latencies.complete(&mut figures, 100);
    handle.shutdown();
    running.await??;
    Ok(figures)
}
