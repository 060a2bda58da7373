//! What is not tried again.

use queuey_rabbitmq::{Delivery, Envelope};

use crate::harness::*;

pub async fn a_dead_letter_keeps_body_and_reason(h: impl Harness) {
    let queue = h.declared().await;
    let sent = h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;

    let delivery = next(&mut deliveries).await;
    delivery.dead_letter("no such customer").await.unwrap();

    let (body, reason) = h.dead(&queue.name).await;
    assert_eq!(Envelope::from_bytes(&body).unwrap(), sent);
    assert_eq!(reason, "no such customer");
    nothing(&mut deliveries).await;
}

pub async fn a_huge_reason_still_dead_letters(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let delivery = next(&mut h.consume(&queue).await).await;

    delivery.dead_letter(&"ß".repeat(500_000)).await.unwrap();

    let (_, reason) = h.dead(&queue.name).await;
    assert!(reason.len() > 2_000 && reason.chars().all(|c| c == 'ß'));
}

pub async fn a_malformed_body_is_set_aside(h: impl Harness) {
    let queue = h.declared().await;
    h.publish_raw(&queue.name, b"\xff\x00 not an envelope")
        .await;
    h.publish(&queue, 2).await;

    let arrived = ack_numbers(&mut h.consume(&queue).await, 1).await;

    assert_eq!(arrived, [2]);
    let (body, reason) = h.dead(&queue.name).await;
    assert_eq!(body, b"\xff\x00 not an envelope");
    assert_eq!(reason, "malformed envelope");
}
