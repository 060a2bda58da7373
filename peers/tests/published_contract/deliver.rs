//! Declaring, publishing, consuming.

use futures_lite::StreamExt;
use futures_util::future::join_all;
use queuey::QueueConfig;
use queuey_rabbitmq::lapin::BasicProperties;

use crate::{peer::*, support::within};

pub async fn declaring_again_changes_nothing(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let other = peer.backend().await;
    other.declare(std::slice::from_ref(&queue)).await.unwrap();

    assert_eq!(peer.broker.ready(&queue.name).await, Some(1));
    let dead = format!("{}.dead", queue.name);
    assert_eq!(peer.broker.ready(&dead).await, Some(0));
}

pub async fn a_job_arrives_as_it_was_published(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let mut sent = envelope(&queue, 1).with_correlation_id("order-7");
    sent.attempt = 4;
    backend.publish(&sent, None).await.unwrap();

    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;
    assert_eq!(*delivery.envelope(), sent);
    delivery.ack().await.unwrap();

    peer.end(deliveries, backend, &queue, 0).await;
}

pub async fn prefetch_bounds_what_is_in_hand(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let queue = queue.prefetch(2);
    for number in 1..=4 {
        let envelope = envelope(&queue, number);
        backend.publish(&envelope, None).await.unwrap();
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();
    let first = next(&mut deliveries).await;
    let _second = next(&mut deliveries).await;
    nothing(&mut deliveries).await;

    first.ack().await.unwrap();
    let _third = next(&mut deliveries).await;
    nothing(&mut deliveries).await;
}

pub async fn a_publish_without_a_queue_fails_and_the_next_one_works(peer: Peer) {
    let (backend, queue) = (peer.backend().await, peer.queue());

    let lost = backend.publish(&envelope(&queue, 1), None).await;

    let words = words(&lost.unwrap_err());
    assert!(words.contains("NO_ROUTE"), "{words}");
    assert!(words.contains(&queue.name), "{words}");
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue, 2), None).await.unwrap();
    peer.until_ready(&queue.name, 1).await;
}

pub async fn a_return_belongs_to_the_publish_that_caused_it(peer: Peer) {
    const ROUNDS: u32 = 300;
    let (backend, queue) = peer.declared().await;
    let missing = peer.queue();
    // Neither first nor last: confirms of neighbours are merged around it.
    let targets = [
        &queue, &queue, &queue, &queue, &queue, &missing, &queue, &queue, &queue, &queue,
    ];

    for round in 0..ROUNDS {
        let sent = targets.map(|target| envelope(target, round.into()));
        let verdicts = join_all(sent.iter().map(|sent| backend.publish(sent, None))).await;

        for (target, verdict) in targets.iter().zip(verdicts) {
            let lost = *target == &missing;
            assert_eq!(verdict.is_err(), lost, "round {round}: {verdict:?}");
        }
    }

    peer.until_ready(&queue.name, 9 * ROUNDS).await;
}

pub async fn other_arguments_are_refused_and_the_backend_goes_on(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let other = QueueConfig::new(&queue.name).max_priority(0);

    let refused = backend.declare(std::slice::from_ref(&other));
    let refusal = within("an answer", refused).await.unwrap_err();

    let words = words(&refusal);
    assert!(words.contains("PRECONDITION_FAILED"), "{words}");
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    peer.until_ready(&queue.name, 1).await;
}

pub async fn a_malformed_body_is_set_aside(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let body = b"{ no envelope ]";
    peer.broker
        .publish(&queue.name, body, BasicProperties::default())
        .await;
    let sent = envelope(&queue, 1);
    backend.publish(&sent, None).await.unwrap();

    let mut deliveries = backend.consume(&queue).await.unwrap();

    assert_eq!(take(&mut deliveries).await, sent);
    peer.until_set_aside(&mut deliveries, &queue).await;
    peer.end(deliveries, backend, &queue, 0).await;
    let letter = peer.broker.take(&format!("{}.dead", queue.name)).await;
    let letter = letter.unwrap();
    assert_eq!(letter.body, body);
    assert_eq!(
        letter.header("x-death-reason").as_deref(),
        Some("malformed envelope")
    );
    assert_eq!(letter.header("x-original-queue"), Some(queue.name));
}

pub async fn without_dead_letter_queues_a_malformed_body_is_dropped(peer: Peer) {
    let options = Options {
        dead_letter_queues: false,
        ..Options::default()
    };
    let (backend, queue) = peer.declared_with(options).await;
    peer.broker
        .publish(&queue.name, b"nonsense", BasicProperties::default())
        .await;

    let mut deliveries = backend.consume(&queue).await.unwrap();
    nothing(&mut deliveries).await;

    peer.end(deliveries, backend, &queue, 0).await;
}

pub async fn close_ends_the_stream(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    nothing(&mut deliveries).await;

    backend.close().await.unwrap();

    // An error may come first.
    within("the end", async {
        while let Some(last) = deliveries.next().await {
            assert!(last.is_err());
        }
    })
    .await;
}
