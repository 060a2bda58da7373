//! What the inspection helpers show.

use super::*;

#[test]
fn held_jobs_say_how_long_they_will_be() {
    block_on(async {
        let backend = declared(q()).await;
        backend.publish(&job(1), Some(SECOND * 5)).await.unwrap();
        backend.defer(&job(2), SECOND * 3).await.unwrap();

        backend.advance(SECOND);

        let held = backend.held("q");
        let held: Vec<_> = held
            .iter()
            .map(|(envelope, wait)| (number(envelope), *wait))
            .collect();
        assert_eq!(held, [(2, SECOND * 2), (1, SECOND * 4)]);
        assert_eq!(backend.pending("q"), []);
    });
}

#[test]
fn settled_jobs_are_recorded_with_the_reason() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1, 2, 3]).await;
        let mut deliveries = consume(&backend).await;

        take(&mut deliveries).await.ack().await.unwrap();
        take(&mut deliveries)
            .await
            .retry(&job(2), SECOND)
            .await
            .unwrap();
        take(&mut deliveries)
            .await
            .defer(&job(3), SECOND)
            .await
            .unwrap();

        let settled = backend.settled("q");
        let settled: Vec<_> = settled
            .iter()
            .map(|(envelope, kind)| (number(envelope), *kind))
            .collect();
        assert_eq!(
            settled,
            [
                (1, AckKind::Succeeded),
                (2, AckKind::Retried),
                (3, AckKind::Deferred)
            ]
        );
        assert_eq!(numbers(&backend.acked("q")), [1, 2, 3]);
        assert_eq!(numbers(&backend.succeeded("q")), [1]);
        assert_eq!(numbers(&backend.retried("q")), [2]);
    });
}

#[test]
fn a_dead_letter_keeps_its_reason() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1]).await;

        take(&mut consume(&backend).await)
            .await
            .dead_letter("no such user")
            .await
            .unwrap();

        let letters = backend.dead_letters("q");
        assert_eq!(letters.len(), 1);
        assert_eq!((number(&letters[0].0), &*letters[0].1), (1, "no such user"));
        assert_eq!(backend.acked("q"), []);
    });
}

#[test]
fn only_the_latest_records_are_kept_but_all_are_counted() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, 0..1_002).await;
        let mut deliveries = consume(&backend).await;

        for _ in 0..1_002 {
            take(&mut deliveries).await.ack().await.unwrap();
        }

        assert_eq!(backend.counts("q").succeeded, 1_002);
        assert_eq!(
            numbers(&backend.succeeded("q")),
            (2..1_002).collect::<Vec<_>>()
        );
    });
}

#[test]
fn jobs_in_hand_are_counted() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1, 2]).await;
        let mut deliveries = consume(&backend).await;

        let _in_hand = take(&mut deliveries).await;

        assert_eq!(backend.unsettled("q"), 1);
        assert_eq!(numbers(&backend.pending("q")), [2]);
    });
}

#[test]
fn an_unknown_queue_looks_empty() {
    block_on(async {
        let backend = MemoryBackend::with_manual_clock();

        assert_eq!(backend.pending("q"), []);
        assert_eq!(backend.held("q"), []);
        assert_eq!(backend.unsettled("q"), 0);
        assert_eq!(backend.settled("q"), []);
        assert_eq!(backend.dead_letters("q"), []);
        assert_eq!(backend.counts("q"), Default::default());
        assert_eq!(backend.queue_config("q"), None);
    });
}

#[test]
fn debug_lists_the_queues_and_whether_it_is_closed() {
    block_on(async {
        let backend = declared(q()).await;
        backend
            .declare(&[QueueConfig::new("emails")])
            .await
            .unwrap();

        let debug = format!("{backend:?}");

        assert_eq!(
            debug,
            r#"MemoryBackend { queues: ["emails", "q"], closed: false }"#
        );
    });
}

#[test]
fn idle_waits_for_the_last_job_in_hand() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1]).await;
        let mut deliveries = consume(&backend).await;
        let mut idle = Box::pin(backend.idle());

        assert!(future::poll_once(&mut idle).await.is_none());
        let delivery = take(&mut deliveries).await;
        assert!(future::poll_once(&mut idle).await.is_none());
        delivery.ack().await.unwrap();

        within(idle).await;
    });
}

#[test]
fn idle_ignores_what_a_manual_clock_holds() {
    block_on(async {
        let backend = declared(q()).await;
        backend.publish(&job(1), Some(SECOND)).await.unwrap();

        within(backend.idle()).await;
    });
}
