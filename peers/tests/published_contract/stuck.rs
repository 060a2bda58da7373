//! What our backend does where the published trait leaves it open.

use std::time::Instant;

use queuey::Error;
use queuey_rabbitmq::lapin::BasicProperties;

use crate::peer::*;

pub async fn what_may_heal_comes_back_after_a_pause(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let dead = format!("{}.dead", queue.name);
    peer.broker.delete(&dead).await;
    let sent = envelope(&queue, 1);
    backend.publish(&sent, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    let started = Instant::now();
    delivery.dead_letter("gave up").await.unwrap_err();

    assert_eq!(take(&mut deliveries).await, sent);
    assert!(started.elapsed() >= 5 * SECOND);
}

pub async fn what_cannot_heal_comes_back_when_the_subscription_ends(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    let again = delivery.envelope().next_attempt();
    delivery
        .retry(again, 30 * 86_400 * SECOND)
        .await
        .unwrap_err();
    nothing(&mut deliveries).await;

    drop(deliveries);
    peer.until_ready(&queue.name, 1).await;
}

pub async fn what_only_our_envelope_can_hold_is_set_aside(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let body = br#"{"job_id":"6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab","job_type":"a","queue":"QUEUE","attempt":1,"enqueued_at_ms":5,"deferrals":0,"priority":0,"payload":1e999}"#;
    let body = String::from_utf8_lossy(body).replace("QUEUE", &queue.name);
    peer.broker
        .publish(&queue.name, body.as_bytes(), BasicProperties::default())
        .await;

    let mut deliveries = backend.consume(&queue).await.unwrap();
    peer.until_set_aside(&mut deliveries, &queue).await;

    peer.end(deliveries, backend, &queue, 0).await;
    let letter = peer.broker.take(&format!("{}.dead", queue.name)).await;
    let letter = letter.unwrap();
    assert_eq!(letter.body, body.as_bytes());
    assert_eq!(
        letter.header("x-death-reason").as_deref(),
        Some("malformed envelope")
    );
}

pub async fn a_closed_backend_is_shut_down(peer: Peer) {
    let (backend, queue) = peer.declared().await;

    backend.close().await.unwrap();

    let refused = backend.publish(&envelope(&queue, 1), None).await;
    assert!(matches!(refused, Err(Error::ShutDown)), "{refused:?}");
}
