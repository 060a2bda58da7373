//! From publish to hand.

use queuey_rabbitmq::Delivery;

use crate::harness::*;

pub async fn a_job_arrives_as_it_was_enqueued(h: impl Harness) {
    let queue = h.declared().await;
    let sent = envelope(&queue, 7).with_correlation_id("order-7");
    queuey_rabbitmq::Backend::publish(h.backend(), &sent, None)
        .await
        .unwrap();

    let delivery = next(&mut h.consume(&queue).await).await;

    assert_eq!(*delivery.envelope(), sent);
    assert!(!delivery.redelivered());
    delivery.ack().await.unwrap();
}

pub async fn jobs_arrive_in_order(h: impl Harness) {
    let queue = h.declared().await;
    for number in 0..20 {
        h.publish(&queue, number).await;
    }

    let arrived = ack_numbers(&mut h.consume(&queue).await, 20).await;

    assert_eq!(arrived, (0..20).collect::<Vec<_>>());
}

pub async fn prefetch_bounds_what_is_in_hand(h: impl Harness) {
    let queue = h.declared_as(|queue| queue.prefetch(2)).await;
    for number in 0..3 {
        h.publish(&queue, number).await;
    }
    let mut deliveries = h.consume(&queue).await;
    let first = next(&mut deliveries).await;
    let second = next(&mut deliveries).await;
    nothing(&mut deliveries).await;

    first.ack().await.unwrap();

    let third = next(&mut deliveries).await;
    assert_eq!((number(&second), number(&third)), (1, 2));
}

pub async fn two_consumers_share_a_queue(h: impl Harness) {
    let queue = h.declared_as(|queue| queue.prefetch(1)).await;
    let mut one = h.consume(&queue).await;
    let mut other = h.consume(&queue).await;
    for number in 0..2 {
        h.publish(&queue, number).await;
    }

    let mut numbers = [
        number(&next(&mut one).await),
        number(&next(&mut other).await),
    ];

    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1]);
}

pub async fn a_queue_holds_only_its_own_jobs(h: impl Harness) {
    let (queue, other) = (h.declared().await, h.declared().await);
    h.publish(&other, 1).await;
    h.publish(&queue, 2).await;

    let mut deliveries = h.consume(&queue).await;

    assert_eq!(ack_numbers(&mut deliveries, 1).await, [2]);
    nothing(&mut deliveries).await;
}
