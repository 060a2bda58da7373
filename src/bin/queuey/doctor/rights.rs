//! What the user may do with the queues an application needs, over AMQP.

use queuey_rabbitmq::{
    QueueConfig, QueueKind, Result,
    admin::{Admin, Right},
};

use super::finding::Report;

pub(super) async fn check(admin: &Admin, config: &QueueConfig, report: &mut Report) -> Result<()> {
    use Right::{Configure, Read, Write};
    let queue = &config.name;
    let dead = admin.backend().dead_queue_name(queue);
    let mut needed = vec![
        (queue, Configure, "declare it, as workers and producers do"),
        (queue, Read, "consume from it"),
        (&dead, Configure, "declare it, as workers and producers do"),
    ];
    let hold = admin.backend().hold_queue_name(queue, 1000);
    match config.kind {
        QueueKind::Quorum => needed.push((queue, Write, "bind it, so that jobs come back to it")),
        _ => needed.extend([
            (&hold, Configure, "declare it, so that jobs can wait"),
            (&hold, Read, "declare where jobs go from there"),
        ]),
    }
    told(admin, &needed, report).await
}

/// What quorum queues share.
pub(super) async fn check_ladder(admin: &Admin, report: &mut Report) -> Result<()> {
    let ladder = "queuey.ladder.0".to_owned();
    let needed = [
        (
            Right::Configure,
            "declare what jobs of quorum queues wait in",
        ),
        (Right::Write, "let jobs of quorum queues wait"),
        (Right::Read, "let jobs of quorum queues come back"),
    ];
    told(
        admin,
        &needed.map(|(right, purpose)| (&ladder, right, purpose)),
        report,
    )
    .await
}

async fn told(admin: &Admin, needed: &[(&String, Right, &str)], report: &mut Report) -> Result<()> {
    for &(name, right, purpose) in needed {
        if !admin.may(right, name).await? {
            let right = match right {
                Right::Configure => "configure",
                Right::Write => "write",
                Right::Read => "read",
            };
            let problem = format!("this user may not {purpose}: it lacks `{right}`");
            let advice =
                format!("let it {right} `{name}` and its like (rabbitmqctl set_permissions)");
            report.error("rights", name, &problem, &advice);
        }
    }
    Ok(())
}
