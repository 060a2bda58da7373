//! Settled once, or back.

use queuey_rabbitmq::Delivery;

use crate::harness::*;

pub async fn an_acked_job_is_gone(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;

    next(&mut deliveries).await.ack().await.unwrap();

    drop(deliveries);
    nothing(&mut h.consume(&queue).await).await;
}

pub async fn a_dropped_delivery_comes_back(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;

    drop(next(&mut deliveries).await);

    let again = next(&mut deliveries).await;
    assert_eq!((number(&again), again.envelope().attempt), (1, 1));
    assert!(again.redelivered());
    again.ack().await.unwrap();
}

pub async fn a_released_delivery_comes_back(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;

    next(&mut deliveries).await.release().await.unwrap();

    let again = next(&mut deliveries).await;
    assert!(again.redelivered());
    again.ack().await.unwrap();
}

pub async fn a_dropped_stream_gives_back_what_it_did_not_hand_out(h: impl Harness) {
    let queue = h.declared().await;
    for number in 0..5 {
        h.publish(&queue, number).await;
    }
    let mut deliveries = h.consume(&queue).await;
    let in_hand = next(&mut deliveries).await;

    drop(deliveries);

    h.until_ready(&queue, 4).await;
    in_hand.ack().await.unwrap();
}

pub async fn a_delivery_outlives_its_stream(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;
    let delivery = next(&mut deliveries).await;
    drop(deliveries);

    delivery.ack().await.unwrap();

    nothing(&mut h.consume(&queue).await).await;
}

pub async fn what_comes_back_keeps_its_place(h: impl Harness) {
    let queue = h.declared_as(|queue| queue.prefetch(2)).await;
    for number in 0..4 {
        h.publish(&queue, number).await;
    }
    let mut deliveries = h.consume(&queue).await;
    let (first, second) = (next(&mut deliveries).await, next(&mut deliveries).await);
    drop(deliveries);

    drop(first);
    drop(second);
    h.until_ready(&queue, 4).await;

    let arrived = ack_numbers(&mut h.consume(&queue).await, 4).await;
    assert_eq!(arrived, [0, 1, 2, 3]);
}
