//! Settling, and what a settlement that fails leaves behind.

use std::time::Instant;

use queuey::Envelope;
use queuey_rabbitmq::lapin::types::AMQPValue;

use crate::peer::*;

pub async fn a_retry_returns_with_the_next_attempt(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let sent = envelope(&queue, 1);
    backend.publish(&sent, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let (first, started) = (next(&mut deliveries).await, Instant::now());

    let second = first.envelope().next_attempt();
    first.retry(second.clone(), SECOND).await.unwrap();

    let returned = take(&mut deliveries).await;
    assert!(started.elapsed() >= SECOND);
    assert_eq!(returned, second);
    assert_eq!((returned.job_id, returned.attempt), (sent.job_id, 2));
    peer.end(deliveries, backend, &queue, 0).await;
}

pub async fn a_deferral_outlives_its_backend(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    let deferred = delivery.envelope().deferred(10);
    delivery.defer(deferred.clone(), 2 * SECOND).await.unwrap();

    let hold = format!("{}.deferred.2000", queue.name);
    assert_eq!(peer.broker.ready(&hold).await, Some(1));
    peer.end(deliveries, backend, &queue, 0).await;
    peer.until_ready(&queue.name, 1).await;
    let message = peer.broker.take(&queue.name).await.unwrap();
    assert_eq!(Envelope::from_bytes(&message.body).unwrap(), deferred);
    assert_eq!(*message.properties.priority(), Some(10));
    assert_eq!(message.header("x-deferrals").as_deref(), Some("1"));
    assert_eq!(message.header("x-attempt").as_deref(), Some("1"));
}

pub async fn a_dead_letter_tells_why(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let mut sent = envelope(&queue, 1);
    sent.attempt = 3;
    backend.publish(&sent, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    delivery.dead_letter("no such customer").await.unwrap();

    peer.end(deliveries, backend, &queue, 0).await;
    let letter = peer.broker.take(&format!("{}.dead", queue.name)).await;
    let letter = letter.unwrap();
    assert_eq!(Envelope::from_bytes(&letter.body).unwrap(), sent);
    assert_eq!(
        letter.header("x-death-reason").as_deref(),
        Some("no such customer")
    );
    assert_eq!(letter.header("x-original-queue"), Some(queue.name));
    assert_eq!(letter.header("x-attempts").as_deref(), Some("3"));
}

pub async fn without_a_dead_letter_queue_the_job_stays(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let dead = format!("{}.dead", queue.name);
    peer.broker.delete(&dead).await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    let refused = delivery.dead_letter("gave up").await.unwrap_err();

    let words = words(&refused);
    assert!(words.contains(&dead), "{words}");
    assert!(words.contains("NO_ROUTE"), "{words}");
    nothing(&mut deliveries).await;
    peer.end(deliveries, backend, &queue, 1).await;
}

pub async fn without_dead_letter_queues_the_job_is_rejected(peer: Peer) {
    let options = Options {
        dead_letter_queues: false,
        ..Options::default()
    };
    let (backend, queue) = peer.declared_with(options).await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    delivery.dead_letter("gave up").await.unwrap();

    peer.end(deliveries, backend, &queue, 0).await;
    let dead = format!("{}.dead", queue.name);
    assert_eq!(peer.broker.ready(&dead).await, None);
}

pub async fn a_foreign_hold_queue_is_left_alone_and_the_job_stays(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let hold = format!("{}.deferred.1000", queue.name);
    let ttl = [("x-message-ttl", AMQPValue::LongLongInt(1000))];
    peer.broker.declare(&hold, &ttl).await;
    peer.broker.remove_later(&hold);
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    let deferred = delivery.envelope().deferred(10);
    let refused = delivery.defer(deferred, SECOND).await.unwrap_err();

    let words = words(&refused);
    assert!(words.contains("PRECONDITION_FAILED"), "{words}");
    assert_eq!(peer.broker.ready(&hold).await, Some(0));
    // Other publishes go on.
    backend.publish(&envelope(&queue, 2), None).await.unwrap();
    peer.end(deliveries, backend, &queue, 2).await;
}

pub async fn a_refused_retry_leaves_the_job_unsettled(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;

    let again = delivery.envelope().next_attempt();
    let refused = delivery.retry(again, 30 * 86_400 * SECOND).await;

    assert!(refused.is_err());
    nothing(&mut deliveries).await;
    peer.end(deliveries, backend, &queue, 1).await;
}
