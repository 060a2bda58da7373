//! A failed attempt, stored for the next.

use std::time::{Duration, Instant};

use queuey_rabbitmq::{Delivery, Error};

use crate::harness::*;

pub async fn a_retry_carries_the_next_attempt(h: impl Harness) {
    let queue = h.declared().await;
    let sent = h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;
    let first = next(&mut deliveries).await;

    let again = first.envelope().next_attempt();
    first.retry(&again, MS).await.unwrap();

    let second = next(&mut deliveries).await;
    assert_eq!(*second.envelope(), sent.next_attempt());
    assert_eq!(second.envelope().attempt, 2);
    assert!(!second.redelivered());
    second.ack().await.unwrap();
    nothing(&mut deliveries).await;
}

pub async fn a_retry_is_never_early(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;
    let delivery = next(&mut deliveries).await;
    let again = delivery.envelope().next_attempt();
    let start = Instant::now();

    delivery.retry(&again, 130 * MS).await.unwrap();
    ack_numbers(&mut deliveries, 1).await;

    assert!(start.elapsed() >= 130 * MS);
}

pub async fn a_retry_returns_to_the_back(h: impl Harness) {
    let queue = h.declared_as(|queue| queue.prefetch(1)).await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;
    let delivery = next(&mut deliveries).await;
    drop(deliveries);

    let again = delivery.envelope().next_attempt();
    delivery.retry(&again, MS).await.unwrap();
    h.publish(&queue, 2).await;
    h.until_ready(&queue, 2).await;
    h.publish(&queue, 3).await;

    let arrived = ack_numbers(&mut h.consume(&queue).await, 3).await;
    let place = |number| arrived.iter().position(|arrived| *arrived == number);
    assert!(place(2) < place(3) && place(1) < place(3), "{arrived:?}");
}

pub async fn a_refused_retry_keeps_the_job_in_hand(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;
    let delivery = next(&mut deliveries).await;
    let again = delivery.envelope().next_attempt();

    let refused = delivery.retry(&again, Duration::MAX).await.unwrap_err();

    assert!(matches!(refused.error, Error::DelayTooLong { .. }));
    assert!(refused.error.is_permanent());
    let delivery = refused.delivery.expect("nothing was acked");
    nothing(&mut deliveries).await;
    delivery.ack().await.unwrap();
}
