//! How a job failed travels with it.

use queuey_rabbitmq::{Backend, Delivery, Failure};

use crate::harness::*;

pub async fn a_retry_carries_its_failure(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;

    let delivery = next(&mut deliveries).await;
    let failure = Failure::new(1, "no");
    let again = delivery.envelope().next_attempt().with_failure(&failure);
    delivery.retry(&again, MS).await.unwrap();

    let delivery = next(&mut deliveries).await;
    assert_eq!(delivery.envelope().failure(), Some(&failure));
    let deferred = delivery.envelope().deferred(10);
    delivery.defer(&deferred, MS).await.unwrap();

    let delivery = next(&mut deliveries).await;
    assert_eq!(delivery.envelope().failure(), Some(&failure));
}

pub async fn a_dead_letter_carries_its_failure(h: impl Harness) {
    let queue = h.declared().await;
    let sent = h.publish(&queue, 1).await;
    let failure = Failure::new(1, "no");

    let delivery = next(&mut h.consume(&queue).await).await;
    delivery.dead_letter_with(&failure, "no").await.unwrap();

    let dead = h.dead_job(&queue.name).await;
    assert_eq!((dead.failure(), &dead), (Some(&failure), &sent));
}

pub async fn a_job_that_is_published_again_keeps_its_failure(h: impl Harness) {
    let queue = h.declared().await;
    let failure = Failure::new(1, "no");
    let job = envelope(&queue, 1).with_failure(&failure);
    h.backend().publish(&job, None).await.unwrap();

    let delivery = next(&mut h.consume(&queue).await).await;
    assert_eq!(delivery.envelope().failure(), Some(&failure));
    delivery.dead_letter("as it came").await.unwrap();

    let dead = h.dead_job(&queue.name).await;
    assert_eq!(dead.failure(), Some(&failure));
}
