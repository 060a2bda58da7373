//! What a consumer gets, and what becomes of it.

use super::*;

#[test]
fn a_delivery_is_parsed_from_bytes() {
    block_on(async {
        let backend = declared(q()).await;
        let envelope = job(1).with_correlation_id("order 7");
        backend.publish(&envelope, None).await.unwrap();

        let delivery = take(&mut consume(&backend).await).await;

        assert_eq!(delivery.envelope(), &envelope);
    });
}

#[test]
fn a_malformed_body_is_set_aside_and_the_stream_goes_on() {
    block_on(async {
        let backend = declared(q()).await;
        backend.publish_raw("q", "not an envelope").unwrap();
        publish(&backend, [1]).await;

        let delivery = take(&mut consume(&backend).await).await;

        assert_eq!(number(delivery.envelope()), 1);
        assert_eq!(backend.malformed("q"), [b"not an envelope"]);
        assert_eq!(backend.counts("q").malformed, 1);
    });
}

#[test]
fn a_malformed_body_takes_no_slot() {
    block_on(async {
        let backend = declared(q()).await;
        let mut deliveries = backend.consume(&q().prefetch(1)).await.unwrap();
        backend.publish_raw("q", "not an envelope").unwrap();

        assert!(poll(&mut deliveries).await.is_none());
        publish(&backend, [1]).await;

        take(&mut deliveries).await;
    });
}

#[test]
fn a_consumer_holds_no_more_than_its_prefetch() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, 1..=3).await;
        let mut deliveries = backend.consume(&q().prefetch(2)).await.unwrap();
        let first = take(&mut deliveries).await;
        let _second = take(&mut deliveries).await;
        assert!(poll(&mut deliveries).await.is_none());

        first.ack().await.unwrap();

        assert!(poll(&mut deliveries).await.is_some());
    });
}

#[test]
fn a_prefetch_of_zero_is_unlimited() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, 0..100).await;
        let mut deliveries = backend.consume(&q().prefetch(0)).await.unwrap();

        let mut in_hand = Vec::new();
        while let Some(delivery) = poll(&mut deliveries).await {
            in_hand.push(delivery);
        }

        assert_eq!(in_hand.len(), 100);
    });
}

#[test]
fn the_prefetch_of_one_consumer_is_not_anothers() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1, 2]).await;
        let mut one = backend.consume(&q().prefetch(1)).await.unwrap();
        let mut other = backend.consume(&q().prefetch(1)).await.unwrap();

        let first = take(&mut one).await;
        let second = take(&mut other).await;

        assert_eq!(numbers([first.envelope(), second.envelope()]), [1, 2]);
    });
}

#[test]
fn dropped_deliveries_come_back_where_they_stood() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, 1..=4).await;
        let mut deliveries = consume(&backend).await;
        let mut in_hand = Vec::new();
        for _ in 1..=3 {
            in_hand.push(take(&mut deliveries).await);
        }

        in_hand.swap_remove(0).ack().await.unwrap();
        drop(in_hand);

        assert_eq!(numbers(&backend.pending("q")), [2, 3, 4]);
    });
}

#[test]
fn only_a_job_that_came_back_is_redelivered() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1, 2]).await;
        let mut deliveries = consume(&backend).await;

        let first = take(&mut deliveries).await;
        assert!(!first.redelivered());
        first.release().await.unwrap();

        let again = take(&mut deliveries).await;
        assert!(again.redelivered());
        assert!(!take(&mut deliveries).await.redelivered());
    });
}

#[test]
fn a_retried_job_is_not_redelivered() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1]).await;
        let mut deliveries = consume(&backend).await;
        drop(take(&mut deliveries).await);
        let again = take(&mut deliveries).await;

        let next = again.envelope().next_attempt();
        again.retry(&next, Duration::ZERO).await.unwrap();

        let delivery = take(&mut deliveries).await;
        assert!(!delivery.redelivered());
        assert_eq!(delivery.envelope().attempt, 2);
    });
}

#[test]
fn a_settlement_that_is_not_awaited_gives_the_job_back() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1]).await;
        let delivery = take(&mut consume(&backend).await).await;

        drop(delivery.ack());

        assert_eq!(numbers(&backend.pending("q")), [1]);
    });
}

#[test]
fn a_dropped_stream_loses_nothing() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1, 2]).await;
        let mut deliveries = consume(&backend).await;
        let delivery = take(&mut deliveries).await;

        drop(deliveries);

        assert_eq!(numbers(&backend.pending("q")), [2]);
        delivery.ack().await.unwrap();
        assert_eq!(numbers(&backend.succeeded("q")), [1]);
    });
}

#[test]
fn queues_are_independent() {
    block_on(async {
        let backend = declared(q()).await;
        backend.declare(&[QueueConfig::new("other")]).await.unwrap();
        publish(&backend, [1]).await;

        let mut other = backend.consume(&QueueConfig::new("other")).await.unwrap();

        assert!(poll(&mut other).await.is_none());
    });
}
