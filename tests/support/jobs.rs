//! Jobs that are numbers, and how they arrive.

use std::time::Duration;

use futures_lite::{Stream, StreamExt, future};
use queuey_rabbitmq::{Delivery, Envelope, QueueConfig, Result};

use super::{pause, within};

pub const MS: Duration = Duration::from_millis(1);

/// How long a job that must not arrive is waited for.
const SILENCE: Duration = Duration::from_millis(150);

/// A job with this number as its payload.
pub fn envelope(queue: &QueueConfig, number: u64) -> Envelope {
    let payload = serde_json::value::to_raw_value(&number).unwrap();
    Envelope::raw("number", &queue.name, payload)
}

pub fn number<D: Delivery>(delivery: &D) -> u64 {
    serde_json::from_str(delivery.envelope().payload.get()).unwrap()
}

/// The next delivery.
pub async fn next<S, D>(deliveries: &mut S) -> D
where
    S: Stream<Item = Result<D>> + Unpin,
{
    within("a delivery", deliveries.next())
        .await
        .expect("the stream goes on")
        .expect("a delivery")
}

/// The numbers of the next `count` jobs, acked.
pub async fn ack_numbers<S, D>(deliveries: &mut S, count: usize) -> Vec<u64>
where
    D: Delivery,
    S: Stream<Item = Result<D>> + Unpin,
{
    let mut numbers = vec![];
    for _ in 0..count {
        let delivery = next(deliveries).await;
        numbers.push(number(&delivery));
        delivery.ack().await.unwrap();
    }
    numbers
}

/// Fails when a delivery arrives although none should.
pub async fn nothing<S, D>(deliveries: &mut S)
where
    S: Stream<Item = Result<D>> + Unpin,
{
    let arrived = async { deliveries.next().await.is_some() };
    let silent = async {
        pause(SILENCE).await;
        false
    };
    assert!(!future::or(arrived, silent).await);
}
