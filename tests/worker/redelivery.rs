//! Jobs that come back after their connection was lost.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use async_channel::{Receiver, Sender};
use queuey_rabbitmq::{FnDeadLetterHook, JobContext, JobError, WorkerHandle};

use crate::{
    script::{Fault, Script},
    *,
};

/// What a fact needs: the script, the job, and its runs.
pub(crate) struct Stage {
    pub(crate) script: Script,
    pub(crate) job: Envelope,
    pub(crate) handle: WorkerHandle,
    /// One for each run that starts.
    started: Receiver<()>,
    /// One lets one run end.
    end: Sender<()>,
    heard: Arc<AtomicU32>,
}

impl Stage {
    pub(crate) async fn runs(&self, count: usize) {
        for _ in 0..count {
            self.started.recv().await.unwrap();
        }
    }

    async fn recognised(&self, count: u64) {
        until(|| self.handle.counts().recognised == count).await;
    }

    /// Runs the job for the first time, as delivery 1.
    pub(crate) async fn acked_once(&self) {
        self.script.first(1, &self.job);
        self.runs(1).await;
        self.end();
        self.script.until_said(&["1 ack"]).await;
    }

    pub(crate) fn end(&self) {
        self.end.try_send(()).unwrap();
    }

    async fn failures(&self, count: u64) {
        until(|| self.handle.settle_failures() == count).await;
    }
}

/// Runs a worker for jobs that end like this while `script` lasts, and waits for no other run.
pub(crate) async fn play<F: Future<Output = ()>>(
    concurrency: usize,
    end_as: fn(JobContext) -> Result<(), JobError>,
    script: impl FnOnce(Arc<Stage>) -> F,
) -> Report {
    let backend = Script::new();
    let (start, started) = async_channel::unbounded();
    let (end, ends) = async_channel::unbounded();
    let heard = Arc::<AtomicU32>::default();
    let worker = Worker::builder(backend.clone())
        .queues(&[Queue::Main])
        .concurrency(concurrency)
        .retry_override(Queue::Main, thrice())
        .handler_fn(move |_: Work, ctx| {
            let (start, ends) = (start.clone(), ends.clone());
            async move {
                start.send(()).await?;
                ends.recv().await?;
                end_as(ctx)
            }
        })
        .on_dead_letter(FnDeadLetterHook::new({
            let heard = Arc::clone(&heard);
            move |_| {
                heard.fetch_add(1, SeqCst);
                async {}
            }
        }));
    let worker = worker.build().await.unwrap();
    let stage = Arc::new(Stage {
        script: backend,
        job: raw("work", "main", "1"),
        handle: worker.handle(),
        started,
        end,
        heard,
    });
    let report = during(worker, script(Arc::clone(&stage))).await;
    assert!(stage.started.is_empty(), "no run but those told of");
    report
}

pub(crate) fn done(_: JobContext) -> Result<(), JobError> {
    Ok(())
}

fn failed(_: JobContext) -> Result<(), JobError> {
    Err(JobError::retryable("no"))
}

pub(crate) fn fatal(_: JobContext) -> Result<(), JobError> {
    Err(JobError::fatal("no"))
}

facts! {
    async fn a_job_that_comes_back_while_it_runs_is_settled_by_that_run(_backend) {
        let report = play(2, done, async |it| {
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.script.cut(1);
            it.script.again(2, &it.job);
            it.recognised(1).await;
            it.end();
            it.script.until_said(&["1 dropped", "2 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.settle_failures), (1, 0));
    }

    async fn several_cuts_during_one_run_leave_the_last_delivery_to_settle(_backend) {
        let report = play(2, done, async |it| {
            it.script.first(1, &it.job);
            it.runs(1).await;
            for number in 2..=4 {
                it.script.cut(number - 1);
                it.script.again(number, &it.job);
                it.recognised(u64::from(number) - 1).await;
            }
            it.end();
            until(|| it.script.said().len() == 4).await;
            assert_eq!(it.script.said()[..2], ["1 dropped", "4 ack"]);
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (1, 3));
    }

    async fn a_job_that_comes_back_after_a_lost_ack_is_only_acked(_backend) {
        let report = play(2, done, async |it| {
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.script.cut(1);
            it.end();
            it.failures(1).await;
            it.script.again(2, &it.job);
            it.script.until_said(&["2 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (1, 1));
    }

    async fn a_lost_retry_is_made_up_for_when_the_job_comes_back(_backend) {
        let report = play(2, failed, async |it| {
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.script.cut(1);
            it.end();
            it.failures(1).await;
            it.script.again(2, &it.job);
            it.script.until_said(&["2 retry"]).await;
        })
        .await;

        assert_eq!((report.counts.retried, report.counts.recognised), (1, 1));
    }

    async fn a_job_whose_successor_is_stored_is_only_acked(_backend) {
        let report = play(2, failed, async |it| {
            it.script.fail_next(Fault::Stored);
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.end();
            it.failures(1).await;
            it.script.again(2, &it.job);
            it.script.until_said(&["1 retry but ack", "2 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.retried, report.counts.succeeded), (1, 0));
    }

    async fn a_settlement_that_is_lost_again_is_kept_again(_backend) {
        let report = play(2, failed, async |it| {
            it.script.fail_next(Fault::Stored);
            it.script.fail_next(Fault::Lost);
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.end();
            it.failures(1).await;
            it.script.again(2, &it.job);
            it.failures(2).await;
            it.script.again(3, &it.job);
            it.script.until_said(&["1 retry but ack", "3 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.retried, report.counts.recognised), (1, 2));
    }

    async fn a_job_that_was_given_back_is_settled_when_it_comes_back(_backend) {
        let report = play(2, failed, async |it| {
            it.script.fail_next(Fault::Back);
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.end();
            it.script.until_said(&["1 release"]).await;
            it.script.again(2, &it.job);
            it.script.until_said(&["1 release", "2 retry"]).await;
        })
        .await;

        assert_eq!((report.counts.retried, report.counts.given_back), (1, 1));
    }

    async fn a_job_that_comes_back_before_it_is_given_back_is_settled(_backend) {
        let report = play(2, failed, async |it| {
            it.script.fail_next(Fault::Back);
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.end();
            it.failures(1).await;
            it.script.cut(1);
            it.script.again(2, &it.job);
            it.script.until_said(&["1 dropped", "2 retry"]).await;
        })
        .await;

        assert_eq!((report.counts.retried, report.counts.given_back), (1, 0));
    }

    async fn the_hook_hears_once_of_a_job_that_comes_back(_backend) {
        let report = play(2, fatal, async |it| {
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.script.cut(1);
            it.end();
            it.failures(1).await;
            it.script.again(2, &it.job);
            it.script.until_said(&["2 dead-letter"]).await;
            assert_eq!(it.heard.load(SeqCst), 1);
        })
        .await;

        assert_eq!((report.counts.dead_lettered, report.counts.recognised), (1, 1));
    }

    async fn a_job_that_was_enqueued_twice_runs_twice(_backend) {
        let report = play(2, done, async |it| {
            it.script.first(1, &it.job);
            it.script.first(2, &it.job);
            it.runs(2).await;
            it.end();
            it.end();
            until(|| it.script.said().len() == 2).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (2, 0));
    }

    async fn both_runs_of_a_job_enqueued_twice_settle_what_comes_back(_backend) {
        let report = play(2, done, async |it| {
            it.script.first(1, &it.job);
            it.script.first(2, &it.job);
            it.runs(2).await;
            it.script.cut(2);
            it.script.again(3, &it.job);
            it.script.again(4, &it.job);
            it.recognised(2).await;
            it.end();
            it.end();
            until(|| it.script.said().len() == 4).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.settle_failures), (2, 0));
    }

    async fn another_attempt_is_another_run(_backend) {
        let report = play(2, done, async |it| {
            it.script.first(1, &it.job);
            it.script.again(2, &it.job.next_attempt());
            it.script.again(3, &it.job.deferred(0));
            it.runs(2).await;
            it.end();
            it.runs(1).await;
            it.end();
            it.end();
            until(|| it.script.said().len() == 3).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (3, 0));
    }

    async fn a_job_that_comes_back_needs_no_slot(_backend) {
        let report = play(1, done, async |it| {
            let other = raw("work", "main", "2");
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.script.cut(1);
            it.script.again(2, &it.job);
            it.recognised(1).await;
            it.script.first(3, &other);
            it.end();
            it.runs(1).await;
            // Lost, so that it comes back to a worker whose only slot is taken.
            it.script.cut(3);
            it.end();
            it.failures(1).await;
            it.script.first(4, &raw("work", "main", "3"));
            it.runs(1).await;
            it.script.again(5, &other);
            until(|| it.script.said().contains(&"5 ack".into())).await;
            it.end();
            until(|| it.script.said().contains(&"4 ack".into())).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (3, 2));
    }

    async fn what_came_back_to_a_run_that_is_dropped_goes_back(_backend) {
        let backend = Script::new();
        let job = raw("work", "main", "1");
        let worker = Worker::builder(backend.clone())
            .queues(&[Queue::Main])
            .handler_fn(|_: Work, _| future::pending());
        let worker = worker.build().await.unwrap();
        let handle = worker.handle();
        backend.first(1, &job);
        backend.again(2, &job);

        future::or(async { drop(worker.run().await) }, until(|| handle.counts().recognised == 1))
            .await;

        until(|| backend.said().len() == 2).await;
    }
}
