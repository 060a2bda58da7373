//! What still works once the backend is closed.

use super::*;

#[test]
fn closing_ends_a_waiting_stream() {
    block_on(async {
        let backend = declared(q()).await;
        let mut deliveries = consume(&backend).await;

        let (next, closed) = within(future::zip(deliveries.next(), backend.close())).await;

        assert!(next.is_none());
        closed.unwrap();
        assert!(backend.is_closed());
    });
}

#[test]
fn a_closed_backend_refuses_all_but_an_ack() {
    block_on(async {
        let backend = declared(q()).await;
        publish(&backend, 1..=4).await;
        let mut deliveries = consume(&backend).await;
        let acked = take(&mut deliveries).await;
        let retried = take(&mut deliveries).await;
        let deferred = take(&mut deliveries).await;
        let dead = take(&mut deliveries).await;

        backend.close().await.unwrap();

        assert!(matches!(backend.declare(&[q()]).await, Err(Error::Closed)));
        assert!(matches!(
            backend.publish(&job(5), None).await,
            Err(Error::Closed)
        ));
        assert!(matches!(
            backend.defer(&job(5), SECOND).await,
            Err(Error::Closed)
        ));
        assert!(matches!(backend.consume(&q()).await, Err(Error::Closed)));
        acked.ack().await.unwrap();
        for unsettled in [
            retried.retry(&job(2), SECOND).await.unwrap_err(),
            deferred.defer(&job(3), SECOND).await.unwrap_err(),
            dead.dead_letter("late").await.unwrap_err(),
        ] {
            assert!(matches!(unsettled.error, Error::Closed));
            assert!(unsettled.delivery.is_some());
        }
    });
}

#[test]
fn what_falls_due_after_closing_stays_held() {
    block_on(async {
        let backend = declared(q()).await;
        backend.publish(&job(1), Some(SECOND)).await.unwrap();
        backend.close().await.unwrap();

        backend.advance(SECOND * 2);

        assert_eq!(backend.pending("q"), []);
        assert_eq!(
            backend.held("q"),
            [(backend.held("q")[0].0.clone(), Duration::ZERO)]
        );
    });
}
