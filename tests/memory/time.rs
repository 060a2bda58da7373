//! Real time: consumers and idleness wake when something falls due.

use super::*;

#[test]
fn idle_waits_for_what_a_real_clock_holds() {
    block_on(async {
        let backend = MemoryBackend::new();
        backend
            .declare(&[q().message_ttl(Duration::from_millis(10))])
            .await
            .unwrap();
        let (start, delay) = (Instant::now(), Duration::from_millis(30));
        backend.publish(&job(1), Some(delay)).await.unwrap();

        within(backend.idle()).await;

        assert!(start.elapsed() >= delay + Duration::from_millis(10));
        assert_eq!(backend.counts("q").expired, 1);
    });
}

#[test]
fn a_waiting_consumer_wakes_when_a_job_falls_due() {
    block_on(async {
        let backend = MemoryBackend::new();
        backend.declare(&[q()]).await.unwrap();
        let (start, delay) = (Instant::now(), Duration::from_millis(30));
        backend.publish(&job(1), Some(delay)).await.unwrap();

        take(&mut consume(&backend).await).await;

        assert!(start.elapsed() >= delay);
    });
}

#[test]
fn a_shorter_hold_wakes_a_consumer_that_waits_for_a_longer() {
    block_on(async {
        let backend = MemoryBackend::new();
        backend.declare(&[q()]).await.unwrap();
        backend
            .publish(&job(1), Some(Duration::from_secs(60)))
            .await
            .unwrap();
        let mut deliveries = consume(&backend).await;

        let shorter = async {
            backend
                .publish(&job(2), Some(Duration::from_millis(5)))
                .await
                .unwrap();
        };
        let (delivery, ()) = future::zip(take(&mut deliveries), shorter).await;

        assert_eq!(number(delivery.envelope()), 2);
    });
}

#[test]
fn an_advance_wakes_a_consumer_on_real_time() {
    block_on(async {
        let backend = MemoryBackend::new();
        backend.declare(&[q()]).await.unwrap();
        backend
            .publish(&job(1), Some(Duration::from_secs(60)))
            .await
            .unwrap();
        let mut deliveries = consume(&backend).await;

        let (delivery, ()) = future::zip(take(&mut deliveries), async {
            backend.advance(Duration::from_secs(60));
        })
        .await;

        assert_eq!(number(delivery.envelope()), 1);
    });
}

#[test]
fn an_advance_shortens_a_wait_in_real_time() {
    block_on(async {
        let backend = MemoryBackend::new();
        backend.declare(&[q()]).await.unwrap();
        let minute = Duration::from_secs(60);
        backend.publish(&job(1), Some(minute)).await.unwrap();
        let mut deliveries = consume(&backend).await;

        let (delivery, ()) = future::zip(take(&mut deliveries), async {
            backend.advance(minute - Duration::from_millis(10));
        })
        .await;

        assert_eq!(number(delivery.envelope()), 1);
    });
}

#[test]
fn several_consumers_on_several_threads_share_a_queue_and_lose_nothing() {
    const JOBS: u32 = 2_000;
    let backend = MemoryBackend::new();
    block_on(backend.declare(&[q()])).unwrap();
    let consumers: Vec<_> = (0..4)
        .map(|consumer| {
            let backend = backend.clone();
            std::thread::spawn(move || {
                block_on(async {
                    let mut deliveries = backend.consume(&q().prefetch(2)).await.unwrap();
                    let mut done = 0;
                    while let Some(delivery) = deliveries.next().await {
                        let delivery = delivery.unwrap();
                        match delivery.envelope().attempt {
                            1 if (number(delivery.envelope()) + consumer).is_multiple_of(5) => {
                                let next = delivery.envelope().next_attempt();
                                delivery
                                    .retry(&next, Duration::from_millis(1))
                                    .await
                                    .unwrap();
                            }
                            _ if done % 7 == 3 => {
                                done += 1;
                                drop(delivery);
                            }
                            _ => {
                                done += 1;
                                delivery.ack().await.unwrap();
                            }
                        }
                    }
                })
            })
        })
        .collect();

    block_on(async {
        publish(&backend, 0..JOBS).await;
        within(backend.idle()).await;
        backend.close().await.unwrap();
    });
    for consumer in consumers {
        consumer.join().unwrap();
    }

    assert_eq!(backend.counts("q").succeeded, u64::from(JOBS));
}
