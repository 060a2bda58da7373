//! In which order jobs come, and when: priorities, delays, time to live.

use super::*;

#[test]
fn a_higher_priority_overtakes_what_waits() {
    block_on(async {
        let backend = declared(q()).await;

        for (number, priority) in [(1, 0), (2, 5), (3, 0), (4, 9), (5, 5)] {
            backend
                .publish(&urgent(number, priority), None)
                .await
                .unwrap();
        }

        assert_eq!(numbers(&backend.pending("q")), [4, 2, 5, 1, 3]);
    });
}

#[test]
fn a_priority_above_the_queues_highest_counts_as_that() {
    block_on(async {
        let backend = declared(q().max_priority(3)).await;

        for (number, priority) in [(1, 3), (2, 200)] {
            backend
                .publish(&urgent(number, priority), None)
                .await
                .unwrap();
        }

        assert_eq!(numbers(&backend.pending("q")), [1, 2]);
    });
}

#[test]
fn without_priorities_jobs_keep_their_order() {
    block_on(async {
        let backend = declared(q().max_priority(0)).await;

        for (number, priority) in [(1, 0), (2, 9)] {
            backend
                .publish(&urgent(number, priority), None)
                .await
                .unwrap();
        }

        assert_eq!(numbers(&backend.pending("q")), [1, 2]);
    });
}

#[test]
fn a_deferral_returns_ahead_and_a_retry_behind() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1, 2]).await;
        let mut deliveries = consume(&backend).await;
        let (first, second) = (take(&mut deliveries).await, take(&mut deliveries).await);
        publish(&backend, [3]).await;

        let next = first.envelope().next_attempt();
        first.retry(&next, SECOND).await.unwrap();
        let next = second.envelope().deferred(10);
        second.defer(&next, SECOND).await.unwrap();
        backend.advance(SECOND);

        assert_eq!(numbers(&backend.pending("q")), [2, 3, 1]);
    });
}

#[test]
fn a_job_is_held_until_it_is_due_and_not_longer() {
    block_on(async {
        let backend = declared(q()).await;
        let mut deliveries = consume(&backend).await;
        backend.publish(&job(1), Some(SECOND)).await.unwrap();

        backend.advance(SECOND - Duration::from_nanos(1));
        assert!(poll(&mut deliveries).await.is_none());
        backend.advance(Duration::from_nanos(1));

        assert!(poll(&mut deliveries).await.is_some());
    });
}

#[test]
fn one_advance_lets_jobs_fall_due_in_due_order() {
    block_on(async {
        let backend = declared(q()).await;
        for (number, seconds) in [(1, 3), (2, 1), (3, 2), (4, 1)] {
            backend
                .publish(&job(number), Some(SECOND * seconds))
                .await
                .unwrap();
        }

        backend.advance(SECOND * 3);

        assert_eq!(numbers(&backend.pending("q")), [2, 4, 3, 1]);
    });
}

#[test]
fn no_delay_is_not_held() {
    block_on(async {
        let backend = declared(q()).await;

        backend
            .publish(&job(1), Some(Duration::ZERO))
            .await
            .unwrap();

        assert_eq!(numbers(&backend.pending("q")), [1]);
        assert_eq!(backend.held("q"), []);
    });
}

#[test]
fn a_job_that_outlives_the_ttl_vanishes() {
    block_on(async {
        let backend = declared(q().message_ttl(SECOND)).await;
        publish(&backend, [1]).await;

        backend.advance(SECOND);

        assert_eq!(backend.pending("q"), []);
        assert_eq!(backend.counts("q").expired, 1);
    });
}

#[test]
fn the_ttl_of_a_held_job_starts_when_it_is_due() {
    block_on(async {
        let backend = declared(q().message_ttl(SECOND * 2)).await;
        backend.publish(&job(1), Some(SECOND * 5)).await.unwrap();

        backend.advance(SECOND * 6);
        assert_eq!(numbers(&backend.pending("q")), [1]);
        backend.advance(SECOND);

        assert_eq!(backend.pending("q"), []);
    });
}

#[test]
fn a_job_in_hand_does_not_expire() {
    block_on(async {
        let backend = declared(q().message_ttl(SECOND)).await;
        publish(&backend, [1]).await;
        let delivery = take(&mut consume(&backend).await).await;

        backend.advance(SECOND * 9);
        delivery.ack().await.unwrap();

        assert_eq!(numbers(&backend.succeeded("q")), [1]);
    });
}
