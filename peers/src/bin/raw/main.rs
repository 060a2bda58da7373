//! `bench-raw`: a bare loop on lapin with the same messages.

mod latency;
mod work;

use peers::bench::{Failure, Figures, Mail, Meter, Request, wire};

/// `tasks` publishes in flight on one channel, or batches of them.
async fn publish(request: &Request) -> Result<Figures, Failure> {
    let connection = wire::connect(&request.url).await?;
    let channel = wire::confirmed(&connection).await?;
    wire::declare(&channel, request.queue(), request.priorities()).await?;
    let message = wire::Message::new(request.queue(), &Mail::new())?;
    let (jobs, tasks) = (request.jobs(), request.tasks());
    message.publish_all(&channel, tasks, tasks).await?;
    let meter = Meter::start();
    if request.scenario == "batch" {
        message.publish_batches(&channel, jobs, tasks).await?;
    } else {
        message.publish_all(&channel, jobs, tasks).await?;
    }
    let figures = meter.stop(jobs)?;
    connection.close(200, "done".into()).await?;
    Ok(figures)
}

fn main() -> Result<(), Failure> {
    let request = Request::get();
    Request::answer(async_global_executor::block_on(async {
        match request.scenario.as_str() {
            "enqueue" | "batch" => publish(request).await,
            "drain" => work::drain(request).await,
            "latency" => latency::measure(request).await,
            other => Err(format!("no scenario {other}").into()),
        }
    }))
}
