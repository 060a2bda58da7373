//! The same attempt, later.

use std::time::{Duration, Instant};

use queuey_rabbitmq::{Backend, Delivery, Error};

use crate::harness::*;

const MS: Duration = Duration::from_millis(1);

pub async fn a_deferral_keeps_the_attempt(h: impl Harness) {
    let queue = h.declared().await;
    let sent = h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;
    let first = next(&mut deliveries).await;

    let later = first.envelope().deferred(10);
    first.defer(&later, MS).await.unwrap();

    let second = next(&mut deliveries).await;
    assert_eq!(*second.envelope(), sent.deferred(10));
    assert_eq!(
        (second.envelope().attempt, second.envelope().deferrals),
        (1, 1)
    );
    second.ack().await.unwrap();
}

pub async fn a_deferral_is_never_early(h: impl Harness) {
    let queue = h.declared().await;
    let mut deliveries = h.consume(&queue).await;
    let start = Instant::now();

    h.backend()
        .defer(&envelope(&queue, 1), 130 * MS)
        .await
        .unwrap();
    ack_numbers(&mut deliveries, 1).await;

    assert!(start.elapsed() >= 130 * MS);
}

pub async fn a_deferral_overtakes_the_backlog(h: impl Harness) {
    let queue = h.declared().await;
    for number in 0..3 {
        h.publish(&queue, number).await;
    }
    h.backend()
        .defer(&envelope(&queue, 9).deferred(10), MS)
        .await
        .unwrap();
    h.until_ready(&queue, 4).await;

    let arrived = ack_numbers(&mut h.consume(&queue).await, 4).await;

    assert_eq!(arrived, [9, 0, 1, 2]);
}

pub async fn deferrals_of_one_delay_keep_their_order_without_priorities(h: impl Harness) {
    let queue = h.declared_as(|queue| queue.max_priority(0)).await;
    for number in 0..5 {
        let envelope = envelope(&queue, number).deferred(0);
        h.backend().defer(&envelope, 2000 * MS).await.unwrap();
    }

    let arrived = ack_numbers(&mut h.consume(&queue).await, 5).await;

    assert_eq!(arrived, [0, 1, 2, 3, 4]);
}

pub async fn a_retry_and_a_deferral_return_at_their_own_priorities(h: impl Harness) {
    let queue = h.declared_as(|queue| queue.prefetch(2)).await;
    h.publish(&queue, 1).await;
    h.publish(&queue, 2).await;
    let mut deliveries = h.consume(&queue).await;
    let (first, second) = (next(&mut deliveries).await, next(&mut deliveries).await);
    drop(deliveries);

    let (again, later) = (
        first.envelope().next_attempt(),
        second.envelope().deferred(10),
    );
    first.retry(&again, 500 * MS).await.unwrap();
    second.defer(&later, 500 * MS).await.unwrap();
    h.until_ready(&queue, 2).await;

    assert_eq!(ack_numbers(&mut h.consume(&queue).await, 2).await, [2, 1]);
}

pub async fn a_refused_deferral_keeps_the_job_in_hand(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;
    let delivery = next(&mut deliveries).await;
    let later = delivery.envelope().deferred(10);

    let refused = delivery.defer(&later, Duration::MAX).await.unwrap_err();

    assert!(matches!(refused.error, Error::DelayTooLong { .. }));
    let delivery = refused.delivery.expect("nothing was acked");
    delivery.ack().await.unwrap();
}
