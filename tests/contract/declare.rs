//! Which queues there are.

use queuey_rabbitmq::{Backend, Error, QueueConfig};

use crate::harness::*;

pub async fn declaring_twice_changes_nothing(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;

    h.backend()
        .declare(std::slice::from_ref(&queue))
        .await
        .unwrap();

    assert_eq!(ack_numbers(&mut h.consume(&queue).await, 1).await, [1]);
}

pub async fn another_argument_is_refused_and_the_backend_stays_usable(h: impl Harness) {
    let queue = h.declared().await;
    h.publish(&queue, 1).await;
    let mut deliveries = h.consume(&queue).await;

    let other = queue.clone().max_priority(3);
    let refused = h.backend().declare(&[other]).await;

    let Err(Error::Precondition {
        queue: named,
        argument,
        ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (named.as_str(), argument.as_str()),
        (&*queue.name, "x-max-priority")
    );
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
    h.publish(&queue, 2).await;
    h.declared().await;
}

pub async fn a_name_that_would_not_fit_is_refused_before_anything_is_created(h: impl Harness) {
    let fits = h.queue();
    let name = fits.name.clone();
    let long = QueueConfig::new(format!("{name}{}", "x".repeat(236 - name.len())));

    let refused = h.backend().declare(&[fits.clone(), long]).await;

    assert!(matches!(refused, Err(Error::NameTooLong { max: 255, .. })));
    let published = h.backend().publish(&envelope(&fits, 1), None).await;
    assert!(matches!(published, Err(Error::Unroutable { .. })));
}

pub async fn publishing_to_a_missing_queue_is_an_error(h: impl Harness) {
    let queue = h.queue();

    let published = h.backend().publish(&envelope(&queue, 1), None).await;

    assert!(
        matches!(published, Err(Error::Unroutable { queue: named, .. }) if named == queue.name)
    );
}

pub async fn consuming_a_missing_queue_is_an_error(h: impl Harness) {
    let queue = h.queue();

    let refused = h
        .backend()
        .consume(&queue)
        .await
        .err()
        .expect("no such queue");

    assert!(refused.to_string().contains(&queue.name), "{refused}");
}
