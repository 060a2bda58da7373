//! Waiting before the first run.

use std::time::{Duration, Instant};

use queuey_rabbitmq::{Backend, Error};

use crate::harness::*;

const MS: Duration = Duration::from_millis(1);

pub async fn a_delayed_job_is_never_early(h: impl Harness) {
    let queue = h.declared().await;
    let mut deliveries = h.consume(&queue).await;
    let start = Instant::now();

    h.backend()
        .publish(&envelope(&queue, 1), Some(120 * MS))
        .await
        .unwrap();
    ack_numbers(&mut deliveries, 1).await;

    assert!(start.elapsed() >= 120 * MS);
}

pub async fn a_zero_delay_passes(h: impl Harness) {
    let queue = h.declared().await;

    h.backend()
        .publish(&envelope(&queue, 1), Some(Duration::ZERO))
        .await
        .unwrap();

    assert_eq!(ack_numbers(&mut h.consume(&queue).await, 1).await, [1]);
}

pub async fn a_short_delay_is_not_stuck_behind_a_long_one(h: impl Harness) {
    let queue = h.declared().await;
    let publish = async |number, delay| {
        let envelope = envelope(&queue, number);
        h.backend().publish(&envelope, Some(delay)).await.unwrap();
    };

    publish(1, 3000 * MS).await;
    publish(2, 100 * MS).await;

    assert_eq!(ack_numbers(&mut h.consume(&queue).await, 2).await, [2, 1]);
}

pub async fn a_delayed_job_goes_to_the_back(h: impl Harness) {
    let queue = h.declared().await;
    h.backend()
        .publish(&envelope(&queue, 1), Some(1000 * MS))
        .await
        .unwrap();
    h.publish(&queue, 2).await;
    h.until_ready(&queue, 2).await;

    assert_eq!(ack_numbers(&mut h.consume(&queue).await, 2).await, [2, 1]);
}

pub async fn a_delay_on_an_undeclared_queue_is_refused(h: impl Harness) {
    let queue = h.queue();

    let refused = h.backend().publish(&envelope(&queue, 1), Some(MS)).await;

    assert!(matches!(refused, Err(Error::UnknownQueue(name)) if name == queue.name));
}

pub async fn a_delay_beyond_the_limit_is_refused(h: impl Harness) {
    let queue = h.declared().await;
    for delay in [Duration::from_millis(2_147_483_648), Duration::MAX] {
        let published = h.backend().publish(&envelope(&queue, 1), Some(delay)).await;
        let deferred = h.backend().defer(&envelope(&queue, 1), delay).await;

        assert!(matches!(published, Err(Error::DelayTooLong { .. })));
        assert!(matches!(deferred, Err(Error::DelayTooLong { .. })));
    }
}
