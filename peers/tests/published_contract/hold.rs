//! Waiting: delays and deferrals.

use std::time::{Duration, Instant};

use queuey::{Error, QueueConfig};

use crate::{peer::*, support::pause};

fn hold(queue: &QueueConfig, ms: u32) -> String {
    format!("{}.deferred.{ms}", queue.name)
}

pub async fn a_delay_is_waited_for(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let (sent, started) = (envelope(&queue, 1), Instant::now());

    backend.publish(&sent, Some(SECOND)).await.unwrap();

    assert_eq!(peer.broker.ready(&hold(&queue, 1000)).await, Some(1));
    assert_eq!(take(&mut deliveries).await, sent);
    assert!(started.elapsed() >= SECOND);
}

pub async fn a_short_wait_passes_a_long_one(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let (long, short) = (envelope(&queue, 1), envelope(&queue, 2));

    backend.publish(&long, Some(3 * SECOND)).await.unwrap();
    backend.publish(&short, Some(SECOND)).await.unwrap();

    assert_eq!(take(&mut deliveries).await, short);
    assert_eq!(take(&mut deliveries).await, long);
}

pub async fn equal_waits_share_a_hold_and_keep_their_priorities(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let retried = envelope(&queue, 1).next_attempt();
    let deferred = envelope(&queue, 2).deferred(10);

    backend.publish(&retried, Some(SECOND)).await.unwrap();
    backend.defer(&deferred, SECOND).await.unwrap();

    assert_eq!(peer.broker.ready(&hold(&queue, 1000)).await, Some(2));
    peer.until_ready(&queue.name, 2).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(take(&mut deliveries).await, deferred);
    assert_eq!(take(&mut deliveries).await, retried);
}

pub async fn retries_and_deferrals_round_separately(peer: Peer) {
    let options = Options {
        retry_granularity: 5 * SECOND,
        ..Options::default()
    };
    let (backend, queue) = peer.declared_with(options).await;
    let delay = Duration::from_millis(1200);

    let retried = envelope(&queue, 1);
    backend.publish(&retried, Some(delay)).await.unwrap();
    let deferred = envelope(&queue, 2).deferred(10);
    backend.defer(&deferred, delay).await.unwrap();

    assert_eq!(peer.broker.ready(&hold(&queue, 5000)).await, Some(1));
    assert_eq!(peer.broker.ready(&hold(&queue, 2000)).await, Some(1));
}

pub async fn a_hold_needs_a_declared_queue(peer: Peer) {
    let (backend, queue) = (peer.backend().await, peer.queue());
    let job = envelope(&queue, 1).deferred(10);

    let published = backend.publish(&job, Some(SECOND)).await;
    let deferred = backend.defer(&job, SECOND).await;

    for refused in [published, deferred] {
        let is_unknown = matches!(&refused, Err(Error::UnknownQueue(name)) if *name == queue.name);
        assert!(is_unknown, "{refused:?}");
    }
    assert_eq!(peer.broker.ready(&hold(&queue, 1000)).await, None);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.defer(&job, SECOND).await.unwrap();
    assert_eq!(peer.broker.ready(&hold(&queue, 1000)).await, Some(1));
}

pub async fn an_idle_hold_queue_goes_away(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let mut deferred = envelope(&queue, 1).deferred(10);
    deferred.attempt = 2;
    let started = Instant::now();

    backend.defer(&deferred, SECOND).await.unwrap();

    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(take(&mut deliveries).await, deferred);
    assert!(started.elapsed() >= SECOND);
    // Looking prolongs its life.
    for _ in 0..5 {
        pause(3 * SECOND).await;
        if peer.broker.ready(&hold(&queue, 1000)).await.is_none() {
            return;
        }
    }
    panic!("it stays");
}

pub async fn a_deferral_passes_the_backlog(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let backlog = [envelope(&queue, 1), envelope(&queue, 2)];
    for job in &backlog {
        backend.publish(job, None).await.unwrap();
    }
    let deferred = envelope(&queue, 3).deferred(10);

    backend.defer(&deferred, SECOND).await.unwrap();

    peer.until_ready(&queue.name, 3).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(take(&mut deliveries).await, deferred);
    for job in backlog {
        assert_eq!(take(&mut deliveries).await, job);
    }
}

pub async fn without_priorities_a_deferral_still_returns(peer: Peer) {
    let (backend, queue) = (peer.backend().await, peer.queue().max_priority(0));
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    // Accepted only where the queue has no arguments beyond its type.
    peer.broker.declare(&queue.name, &[]).await;
    let deferred = envelope(&queue, 1).deferred(0);

    backend.defer(&deferred, SECOND).await.unwrap();

    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(take(&mut deliveries).await, deferred);
}

pub async fn a_wait_beyond_the_limit_is_refused(peer: Peer) {
    let (backend, queue) = peer.declared().await;
    let job = envelope(&queue, 1).deferred(10);

    let refused = backend.defer(&job, 30 * 86_400 * SECOND).await;

    assert!(refused.is_err());
    assert_eq!(peer.broker.ready(&queue.name).await, Some(0));
    let too_long = hold(&queue, 2_592_000_000);
    assert_eq!(peer.broker.ready(&too_long).await, None);
    backend.defer(&job, SECOND).await.unwrap();
    assert_eq!(peer.broker.ready(&hold(&queue, 1000)).await, Some(1));
}
