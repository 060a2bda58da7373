//! From the enqueue call to the start of the handler, at a steady 100 jobs a second.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_io::Timer;
use futures_lite::future;
use peers::bench::{Failure, Figures, Latencies, Mail, Meter, Request};
use queuey_rabbitmq::prelude::*;

use crate::{Letter, Queue, connect};

/// One backend, a producer and a worker on it. The first second does not count.
pub(crate) async fn measure(request: &Request) -> Result<Figures, Failure> {
    let backend = connect().await?;
    let producer = Producer::<Queue, _>::new(backend.clone()).await?;
    let latencies = Arc::new(Latencies::default());
    let seen = latencies.clone();
    let worker = Worker::<Queue, _>::builder(backend)
        .handler_fn(move |Letter(mail): Letter, _: JobContext| {
            seen.arrived(&mail);
            async { Ok(()) }
        })
        .close_backend_on_shutdown(true)
        .build()
        .await?;
    let handle = worker.handle();
    let jobs = 100 * request.seconds();
    let send = async {
        let (meter, start) = (Meter::start(), Instant::now());
        for number in 0..jobs {
            Timer::at(start + Duration::from_millis(10 * number)).await;
            producer.enqueue(&Letter(Mail::new())).await?;
        }
        while handle.counts().succeeded < jobs {
            Timer::after(Duration::from_millis(1)).await;
        }
        let mut figures = meter.stop(jobs)?;
        latencies.complete(&mut figures, 100);
        handle.shutdown();
        Ok(figures)
    };
    let (report, figures) = future::zip(worker.run(), send).await;
    report?;
    figures
}
