//! From the publish call to the delivery, at a steady 100 messages a second.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_io::Timer;
use futures_util::StreamExt;
use lapin::options::BasicAckOptions;
use peers::bench::{Failure, Figures, Latencies, Mail, Meter, Request, wire};
use serde::Deserialize;

use crate::work::consume;

#[derive(Deserialize)]
struct Body {
    payload: Mail,
}

/// One connection, a channel to publish and one to consume. The first second does not count.
pub(crate) async fn measure(request: &Request) -> Result<Figures, Failure> {
    let connection = wire::connect(&request.url).await?;
    let channel = wire::confirmed(&connection).await?;
    wire::declare(&channel, request.queue(), request.priorities()).await?;
    let (mut consumer, consuming) = consume(&connection, request).await?;
    let latencies = Arc::new(Latencies::default());
    let seen = latencies.clone();
    let jobs = 100 * request.seconds();
    let receiving = async_global_executor::spawn(async move {
        for _ in 0..jobs {
            let delivery = consumer.next().await.ok_or("the consumer ended")??;
            let body: Body = serde_json::from_slice(&delivery.data)?;
            seen.arrived(&body.payload);
            delivery.ack(BasicAckOptions::default()).await?;
        }
        Ok::<_, Failure>(consumer)
    });
    let (meter, start) = (Meter::start(), Instant::now());
    for number in 0..jobs {
        Timer::at(start + Duration::from_millis(10 * number)).await;
        let mail = Mail::new();
        let message = wire::Message::new(request.queue(), &mail)?;
        message.publish(&channel).await?;
    }
    let consumer = receiving.await?;
    let mut figures = meter.stop(jobs)?;
    latencies.complete(&mut figures, 100);
    connection.close(200, "done".into()).await?;
    drop((consumer, consuming));
    Ok(figures)
}
