//! The broker and the connection to it, over AMQP.

use queuey_rabbitmq::{
    Result,
    admin::{Admin, Publishing, Terms},
};

use super::finding::Report;

/// What brokers allow by default, and this library asks for.
const FRAME_MAX: u32 = 128 * 1024;
/// Seconds; a busy machine or network may well be silent for so long.
const SHORT_HEARTBEAT: u16 = 5;

pub(super) fn check(terms: &Terms, quorum: bool, report: &mut Report) {
    let version = terms.version.as_deref().unwrap_or_default();
    if terms.version.is_none() {
        let advice = "expect surprises: it is tested with RabbitMQ 3.10, 4.0 and 4.3 alone";
        report.warning("broker", "broker", "this is not RabbitMQ", advice);
    }
    if terms.is_before(3, 10) {
        let problem = format!("this is RabbitMQ {version}; nothing before 3.10 was tried");
        report.warning("broker", "broker", &problem, "upgrade RabbitMQ");
    }
    if quorum && terms.is_before(4, 0) {
        let problem = format!("quorum queues need RabbitMQ 4.0, this is {version}");
        let advice = "upgrade RabbitMQ, or use classic queues";
        report.error("quorum-unsupported", "broker", &problem, advice);
    }
    match terms.heartbeat {
        0 => report.warning(
            "heartbeat",
            "broker",
            "there are no heartbeats: a broker that is gone without a word is noticed late",
            "leave `heartbeat` out of the address, or set it in rabbitmq.conf",
        ),
        seconds @ ..SHORT_HEARTBEAT => report.warning(
            "heartbeat",
            "broker",
            &format!("heartbeats are due every {seconds} s: a short pause ends connections"),
            "agree on 10 s or more, in the address and in rabbitmq.conf",
        ),
        _ => {}
    }
    if (1..FRAME_MAX).contains(&terms.frame_max) {
        let problem = format!(
            "frames have at most {} bytes, and a message with longer headers ends a connection",
            terms.frame_max
        );
        let advice = format!("agree on {FRAME_MAX}, in the address and in rabbitmq.conf");
        report.warning("frame-max", "broker", &problem, &advice);
    }
}

pub(super) async fn check_publishing(admin: &Admin, report: &mut Report) -> Result<()> {
    match admin.publishing().await? {
        Publishing::Allowed => {}
        Publishing::Refused(words) => report.error(
            "rights",
            "broker",
            &format!("this user may not publish: {words}"),
            "let it write to `amq.default` (rabbitmqctl set_permissions)",
        ),
        Publishing::Blocked(words) => report.error(
            "blocked",
            "broker",
            &format!("the broker takes no jobs from anybody: {words}"),
            "free memory or disk on its node, or raise the limit in rabbitmq.conf",
        ),
    }
    Ok(())
}
