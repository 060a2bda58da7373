//! The promises only the in-memory backend makes, and those of the contract it can show exactly.

mod close;
mod deliver;
mod inspect;
mod order;
mod refuse;
mod time;

use std::{
    future::Future,
    time::{Duration, Instant},
};

use futures_lite::{
    StreamExt,
    future::{self, block_on},
};
use queuey_rabbitmq::{
    AckKind, Backend, Delivery, Envelope, Error, MemoryBackend, MemoryDeliveries, MemoryDelivery,
    QueueConfig, QueueKind,
};
use serde_json::value::to_raw_value;

const SECOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_millis(2_147_483_647);

fn q() -> QueueConfig {
    QueueConfig::new("q")
}

fn job(number: u32) -> Envelope {
    Envelope::raw("ping", "q", to_raw_value(&number).unwrap())
}

fn urgent(number: u32, priority: u8) -> Envelope {
    let mut envelope = job(number);
    envelope.priority = priority;
    envelope
}

fn number(envelope: &Envelope) -> u32 {
    envelope.payload.get().parse().unwrap()
}

fn numbers<'a>(envelopes: impl IntoIterator<Item = &'a Envelope>) -> Vec<u32> {
    envelopes.into_iter().map(number).collect()
}

/// A queue `q` under a manual clock.
async fn declared(queue: QueueConfig) -> MemoryBackend {
    let backend = MemoryBackend::with_manual_clock();
    backend.declare(&[queue]).await.unwrap();
    backend
}

async fn publish(backend: &MemoryBackend, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        backend.publish(&job(number), None).await.unwrap();
    }
}

async fn consume(backend: &MemoryBackend) -> MemoryDeliveries {
    backend.consume(&q()).await.unwrap()
}

async fn take(deliveries: &mut MemoryDeliveries) -> MemoryDelivery {
    within(deliveries.next()).await.unwrap().unwrap()
}

/// What is there without waiting.
async fn poll(deliveries: &mut MemoryDeliveries) -> Option<MemoryDelivery> {
    let polled = future::poll_once(deliveries.next()).await;
    polled.map(|next| next.unwrap().unwrap())
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    future::or(work, async {
        async_io::Timer::after(Duration::from_secs(20)).await;
        panic!("nothing came in 20 s");
    })
    .await
}
