//! Jobs that come back although they were acked, or look as if they did.

use queuey_rabbitmq::Failure;

use crate::{
    redelivery::{done, fatal, play},
    *,
};

facts! {
    async fn a_job_whose_ack_did_not_arrive_is_acked_again_and_not_run(_backend) {
        let report = play(2, done, async |it| {
            it.acked_once().await;
            it.script.cut(1);
            it.script.again(2, &it.job);
            it.script.until_said(&["1 ack", "2 ack"]).await;
            it.script.cut(2);
            it.script.again(3, &it.job);
            it.script.until_said(&["1 ack", "2 ack", "3 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (1, 2));
    }

    async fn one_lost_ack_stands_for_one_message(_backend) {
        let report = play(2, done, async |it| {
            it.acked_once().await;
            it.script.cut(1);
            it.script.again(2, &it.job);
            it.script.until_said(&["1 ack", "2 ack"]).await;
            it.script.again(3, &it.job);
            it.runs(1).await;
            it.end();
            it.script.until_said(&["1 ack", "2 ack", "3 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (2, 1));
    }

    async fn an_ack_is_not_lost_while_its_subscription_lasts(_backend) {
        let report = play(2, done, async |it| {
            it.acked_once().await;
            // Moved here by a person, say, who had a look at it first.
            it.script.again(2, &it.job);
            it.runs(1).await;
            it.end();
            it.script.until_said(&["1 ack", "2 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.succeeded, report.counts.recognised), (2, 0));
    }

    async fn a_dead_job_that_is_replayed_runs_again(_backend) {
        play(2, fatal, async |it| {
            it.script.first(1, &it.job);
            it.runs(1).await;
            it.end();
            it.script.until_said(&["1 dead-letter"]).await;
            it.script.cut(1);
            let mut failure = Failure::new(1, "no");
            failure.failed_at_ms = 7;
            it.script.again(2, &it.job.clone().with_failure(&failure));
            it.runs(1).await;
            it.end();
            it.script.until_said(&["1 dead-letter", "2 dead-letter"]).await;
        })
        .await;
    }

    async fn a_job_enqueued_again_under_its_old_id_runs_again(_backend) {
        play(2, done, async |it| {
            it.acked_once().await;
            it.script.cut(1);
            let mut again = it.job.clone();
            again.enqueued_at_ms += 1;
            it.script.again(2, &again);
            it.runs(1).await;
            it.end();
            it.script.until_said(&["1 ack", "2 ack"]).await;
        })
        .await;
    }
}
