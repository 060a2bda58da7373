//! A policy of the user's own that panics when it is asked.

use std::{sync::Arc, time::Duration};

use futures_lite::StreamExt;
use futures_util::future::join4;
use queuey_rabbitmq::{
    Attempt, Backend, BackoffPolicy, Chain, Error, RabbitMqBackend, RabbitMqOptions, Rebuilding,
    ReconnectPolicy,
};

use crate::{
    relay::Relay,
    support::{Broker, jobs::*, within},
};

/// Panics where this is to come back.
#[derive(Debug)]
struct Faulty(Rebuilding);

impl ReconnectPolicy for Faulty {
    fn next_delay(&self, attempt: &Attempt<'_>) -> Option<Duration> {
        assert!(attempt.rebuilding != self.0, "no rule for this");
        Some(Duration::ZERO)
    }
}

fn options(broker: &Broker, faulty: Rebuilding) -> RabbitMqOptions {
    RabbitMqOptions::new()
        .reconnect(Some(Arc::new(Faulty(faulty))))
        .runtime(broker.runtime.clone())
}

fn assert_named(error: &Error) {
    let words = Chain(error).to_string();
    assert!(
        words.contains("the reconnect policy panicked: no rule for this"),
        "{words}"
    );
}

pub async fn a_policy_that_panics_gives_up_the_connection_and_all_hear_why(broker: Broker) {
    let relay = Relay::to(&broker.url);
    let backend =
        RabbitMqBackend::with_options(&relay.url, options(&broker, Rebuilding::Connection));
    let backend = backend.await.unwrap();
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    let deliveries = backend.consume(&queue).await.unwrap();
    relay.cut();
    let waits = envelope(&queue, 3);
    let (cut_off, declared, deferred, consumed) = within("the answers", async {
        join4(
            backend.publish(&envelope(&queue, 2), None),
            backend.declare(std::slice::from_ref(&queue)),
            backend.defer(&waits, Duration::from_secs(1)),
            backend.consume(&queue),
        )
        .await
    })
    .await;
    assert_named(&cut_off.unwrap_err());
    assert_named(&declared.unwrap_err());
    assert_named(&deferred.unwrap_err());
    assert_named(&consumed.expect_err("no connection"));
    drop(deliveries);
    let next = within("an answer", backend.publish(&envelope(&queue, 4), None)).await;
    assert_named(&next.unwrap_err());
    within("the end", backend.close()).await.unwrap();
}

pub async fn a_policy_against_every_attempt_is_not_against_the_first(broker: Broker) {
    let queue = broker.queue();
    for policy in [Some(BackoffPolicy::new().max_attempts(0)), None] {
        let options = match policy {
            Some(policy) => RabbitMqOptions::new().reconnect_with(policy),
            None => RabbitMqOptions::new().reconnect(None),
        };
        let backend = broker.backend_with(options.wait_for_broker(true)).await;
        backend.declare(std::slice::from_ref(&queue)).await.unwrap();
        backend.publish(&envelope(&queue, 1), None).await.unwrap();

        let mut deliveries = backend.consume(&queue).await.unwrap();

        assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
    }
}

pub async fn a_policy_that_panics_gives_up_the_subscription_alone(broker: Broker) {
    let backend = broker
        .backend_with(options(&broker, Rebuilding::Consumer))
        .await;
    let (queue, other) = (broker.queue(), broker.queue());
    backend
        .declare(&[queue.clone(), other.clone()])
        .await
        .unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    broker.delete(&queue.name).await;

    let end = within("the end", deliveries.next())
        .await
        .expect("an error");
    assert_named(&end.expect_err("no job"));
    assert!(within("the end", deliveries.next()).await.is_none());
    backend.publish(&envelope(&other, 1), None).await.unwrap();
    let mut others = backend.consume(&other).await.unwrap();
    assert_eq!(ack_numbers(&mut others, 1).await, [1]);
}
