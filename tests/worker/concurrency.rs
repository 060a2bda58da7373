//! How many jobs run at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use crate::*;

/// How many run now, and how many did at most.
#[derive(Clone, Default)]
struct Gauge(Arc<[AtomicUsize; 2]>);

impl Gauge {
    fn enter(&self) {
        let now = self.0[0].fetch_add(1, SeqCst) + 1;
        self.0[1].fetch_max(now, SeqCst);
    }

    fn leave(&self) {
        self.0[0].fetch_sub(1, SeqCst);
    }

    fn most(&self) -> usize {
        self.0[1].load(SeqCst)
    }
}

facts! {
    async fn no_more_jobs_run_at_once_than_allowed(backend) {
        let gauge = Gauge::default();
        let worker = builder(&backend).concurrency(3).handler_fn({
            let gauge = gauge.clone();
            move |_: Work, _| {
                let gauge = gauge.clone();
                async move {
                    gauge.enter();
                    Timer::after(Duration::from_millis(3)).await;
                    gauge.leave();
                    Ok(())
                }
            }
        });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, (0..12).map(Work)).await;

        drain(worker, &backend).await;

        assert_eq!(gauge.most(), 3);
    }

    async fn panics_and_timeouts_leave_the_concurrency_as_it_was(backend) {
        let gauge = Gauge::default();
        let worker = builder(&backend)
            .concurrency(4)
            .job_timeout(Duration::from_millis(200))
            .handler_fn({
                let gauge = gauge.clone();
                move |job: Work, _| {
                    let gauge = gauge.clone();
                    async move {
                        match job.0 {
                            0..200 => panic!("one of many"),
                            200..204 => future::pending().await,
                            _ => gauge.enter(),
                        }
                        // Goes on when all slots are taken, times out if one was lost.
                        until(|| gauge.most() == 4).await;
                        Ok(())
                    }
                }
            });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, (0..204).map(Work)).await;

        let report = during(worker, async {
            backend.idle().await;
            enqueue(&backend, (204..208).map(Work)).await;
            backend.idle().await;
        })
        .await;

        assert_eq!((report.counts.dead_lettered, report.counts.succeeded), (204, 4));
    }

    async fn a_handler_that_ignores_its_timeout_keeps_its_slot(backend) {
        let gauge = Gauge::default();
        let worker = builder(&backend)
            .concurrency(1)
            .job_timeout(Duration::from_millis(1))
            .handler_fn({
                let gauge = gauge.clone();
                move |_: Work, _| {
                    let gauge = gauge.clone();
                    async move {
                        future::yield_now().await;
                        gauge.enter();
                        thread::sleep(Duration::from_millis(5));
                        gauge.leave();
                        future::yield_now().await;
                        Ok(())
                    }
                }
            });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, (0..6).map(Work)).await;

        let report = drain(worker, &backend).await;

        assert_eq!(gauge.most(), 1);
        assert_eq!(report.counts.succeeded + report.counts.dead_lettered, 6);
    }

    async fn a_busy_queue_runs_beside_idle_ones(backend) {
        let worker = builder(&backend)
            .concurrency(2)
            .handler_fn(|_: Flat, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, (0..10).map(Flat)).await;

        let report = drain(worker, &backend).await;

        assert_eq!(report.counts.succeeded, 10);
    }

    async fn any_concurrency_is_fine(backend) {
        let worker = builder(&backend)
            .concurrency(usize::MAX)
            .handler_fn(|_: Work, _| async { Ok(()) });
        let worker = worker.build().await.unwrap();
        enqueue(&backend, [Work(1)]).await;

        let report = drain(worker, &backend).await;

        assert_eq!(report.counts.succeeded, 1);
    }
}
