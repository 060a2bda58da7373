//! Jobs that may have ended the process which had them.

use queuey_rabbitmq::{
    codec,
    lapin::{
        BasicProperties,
        types::{AMQPValue, FieldTable},
    },
};

use crate::{
    redelivery::{done, play},
    script::Fault,
    *,
};

/// `job` as it is stored again after so many crashes.
fn copy(job: &Envelope, crashes: u32) -> Envelope {
    let count = AMQPValue::LongUInt(crashes);
    let mut headers = FieldTable::default();
    headers.insert(codec::CRASHES.into(), count);
    let properties = BasicProperties::default().with_headers(headers);
    codec::envelope(&job.to_bytes(), &properties).unwrap()
}

facts! {
    async fn only_the_copy_is_run(_backend) {
        let report = play(2, done, async |it| {
            it.script.crashed(1, &it.job);
            it.script.until_said(&["1 replace 1"]).await;
            it.script.again(2, &copy(&it.job, 1));
            it.runs(1).await;
            it.end();
            it.script.until_said(&["1 replace 1", "2 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.crashed, report.counts.succeeded), (1, 1));
    }

    async fn an_original_whose_ack_was_lost_is_acked_and_not_run(_backend) {
        let report = play(2, done, async |it| {
            it.script.fail_next(Fault::Stored);
            it.script.crashed(1, &it.job);
            it.script.until_said(&["1 replace 1 but ack"]).await;
            it.script.crashed(2, &it.job);
            it.script.until_said(&["1 replace 1 but ack", "2 ack"]).await;
            // Nor when nobody said that it was lost.
            it.script.cut(2);
            it.script.crashed(3, &it.job);
            it.script
                .until_said(&["1 replace 1 but ack", "2 ack", "3 ack"])
                .await;
        })
        .await;

        assert_eq!((report.counts.recognised, report.counts.succeeded), (2, 0));
    }

    async fn a_copy_that_was_stored_twice_is_run_once(_backend) {
        let report = play(2, done, async |it| {
            let copy = copy(&it.job, 1);
            it.script.again(1, &copy);
            it.runs(1).await;
            it.script.again(2, &copy);
            until(|| it.handle.counts().recognised == 1).await;
            it.end();
            it.script.until_said(&["1 dropped", "2 ack"]).await;
            // Given back by a channel that lives.
            it.script.again(3, &copy);
            it.script.until_said(&["1 dropped", "2 ack", "3 ack"]).await;
        })
        .await;

        assert_eq!((report.counts.recognised, report.counts.succeeded), (2, 1));
    }

    async fn a_job_at_its_limit_is_dead_and_not_run(_backend) {
        let report = play(2, done, async |it| {
            it.script.crashed(1, &copy(&it.job, 9));
            it.script.until_said(&["1 dead-letter"]).await;
        })
        .await;

        assert_eq!(report.counts.dead_lettered, 1);
    }

    async fn a_job_that_crashed_often_is_kept_apart_before_it_runs(_backend) {
        let report = play(2, done, async |it| {
            it.script.crashed(1, &copy(&it.job, 2));
            it.script.until_said(&["1 defer"]).await;
        })
        .await;

        assert_eq!(report.counts.crashed, 1);
    }
}
