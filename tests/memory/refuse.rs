//! What is refused, as a broker would refuse it.

use super::*;

#[test]
fn the_first_declaration_fixes_the_config() {
    block_on(async {
        let backend = declared(q().prefetch(3)).await;

        backend.declare(&[q().prefetch(9)]).await.unwrap();

        assert_eq!(backend.queue_config("q"), Some(q().prefetch(3)));
    });
}

#[test]
fn a_queue_declared_with_other_arguments_is_refused() {
    block_on(async {
        for (other, name) in [
            (q().durable(false), "durable"),
            (q().message_ttl(SECOND), "x-message-ttl"),
            (q().max_priority(3), "x-max-priority"),
            (q().max_priority(0).kind(QueueKind::Quorum), "x-queue-type"),
        ] {
            let max_priority = if other.max_priority.is_none() { 0 } else { 10 };
            let backend = declared(q().max_priority(max_priority)).await;

            let error = backend.declare(&[other]).await.unwrap_err();

            assert!(
                matches!(&error, Error::Precondition { queue, argument, .. } if queue == "q" && argument == name),
                "{error:?}"
            );
        }
    });
}

#[test]
fn a_refused_name_creates_nothing() {
    block_on(async {
        let backend = MemoryBackend::with_manual_clock();
        let long = QueueConfig::new("q".repeat(236));

        let error = backend.declare(&[q(), long]).await.unwrap_err();

        assert!(matches!(
            error,
            Error::NameTooLong {
                len: 256,
                max: 255,
                ..
            }
        ));
        assert_eq!(backend.queue_names(), [""; 0]);
    });
}

#[test]
fn the_longest_name_that_fits_is_declared() {
    block_on(async {
        let name = "q".repeat(235);

        let backend = declared(QueueConfig::new(&name)).await;

        assert_eq!(backend.queue_names(), [name]);
    });
}

#[test]
fn a_reserved_name_is_refused() {
    block_on(async {
        let backend = MemoryBackend::with_manual_clock();

        let error = backend
            .declare(&[QueueConfig::new("amq.q")])
            .await
            .unwrap_err();

        assert!(matches!(error, Error::AccessRefused { .. }));
    });
}

#[test]
fn a_transient_quorum_queue_is_refused() {
    block_on(async {
        let backend = MemoryBackend::with_manual_clock();
        let queue = q().kind(QueueKind::Quorum).durable(false);

        let error = backend.declare(&[queue]).await.unwrap_err();

        assert!(matches!(error, Error::Broker { .. }));
    });
}

#[test]
fn a_publish_to_no_queue_is_unroutable() {
    block_on(async {
        let backend = MemoryBackend::with_manual_clock();

        let error = backend.publish(&job(1), None).await.unwrap_err();

        assert!(matches!(error, Error::Unroutable { .. }));
    });
}

#[test]
fn a_delay_on_no_queue_is_refused() {
    block_on(async {
        let backend = MemoryBackend::with_manual_clock();

        let published = backend.publish(&job(1), Some(SECOND)).await.unwrap_err();
        let deferred = backend.defer(&job(1), SECOND).await.unwrap_err();

        assert!(matches!(published, Error::UnknownQueue(_)));
        assert!(matches!(deferred, Error::UnknownQueue(_)));
    });
}

#[test]
fn consuming_no_queue_is_refused() {
    block_on(async {
        let backend = MemoryBackend::with_manual_clock();

        let error = backend.consume(&q()).await.unwrap_err();

        assert!(matches!(
            error,
            Error::Broker {
                action: "consume",
                ..
            }
        ));
    });
}

#[test]
fn a_body_beyond_the_brokers_limit_is_refused() {
    block_on(async {
        let backend = declared(q()).await;
        let payload = to_raw_value(&"x".repeat(16 << 20)).unwrap();

        let error = backend
            .publish(&Envelope::raw("big", "q", payload), None)
            .await
            .unwrap_err();

        assert!(matches!(
            error,
            Error::PayloadTooLarge {
                limit: 16_777_216,
                ..
            }
        ));
    });
}

#[test]
fn a_delay_beyond_the_brokers_limit_is_refused() {
    block_on(async {
        let backend = declared(q()).await;
        let delay = LIMIT + Duration::from_nanos(1);

        let error = backend.publish(&job(1), Some(delay)).await.unwrap_err();

        assert!(matches!(error, Error::DelayTooLong { .. }));
        backend.publish(&job(1), Some(LIMIT)).await.unwrap();
    });
}

#[test]
fn a_delay_on_a_quorum_queue_may_last_for_years() {
    block_on(async {
        let backend = declared(q().kind(QueueKind::Quorum)).await;
        let limit = Duration::from_secs((1 << 28) - 1);
        let delay = limit + Duration::from_nanos(1);

        backend.publish(&job(1), Some(limit)).await.unwrap();
        let error = backend.publish(&job(1), Some(delay)).await.unwrap_err();

        assert!(matches!(error, Error::DelayTooLong { .. }));
    });
}

#[test]
fn a_refused_retry_leaves_the_job_in_hand() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, [1]).await;
        let delivery = take(&mut consume(&backend).await).await;

        let unsettled = delivery
            .retry(&job(1).next_attempt(), Duration::MAX)
            .await
            .unwrap_err();

        assert!(matches!(unsettled.error, Error::DelayTooLong { .. }));
        unsettled.delivery.unwrap().ack().await.unwrap();
        assert_eq!(numbers(&backend.succeeded("q")), [1]);
    });
}
