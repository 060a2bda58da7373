//! One queue and its dead letters, over AMQP.

use queuey_rabbitmq::{
    Error, QueueConfig, Result,
    admin::{Admin, Depth},
    topology,
};

use super::{arguments, finding::Report, rights};

pub(super) async fn check(admin: &Admin, config: &QueueConfig, report: &mut Report) -> Result<()> {
    let queue = &config.name;
    let options = admin.backend().options();
    let dead = topology::dead_queue(config, &options.dead_suffix);
    rights::check(admin, config, report).await?;
    let main = topology::main_queue(config, Some(&dead.name));
    if !arguments::check(admin, &main, report).await? {
        report.error(
            "queue-missing",
            queue,
            "there is no such queue",
            "start a worker or producer of it, which declares it; is the name right, and the vhost \
             in the address?",
        );
        return Ok(());
    }
    if let Some(depth) = depth(admin, queue).await?
        && depth.consumers == 0
    {
        let problem = format!("nobody consumes from it; {} jobs are ready", depth.ready);
        let advice = "start a worker with a handler for its jobs";
        match depth.ready {
            0 => report.note("no-consumer", queue, &problem, advice),
            _ => report.warning("no-consumer", queue, &problem, advice),
        }
    }
    if !arguments::check(admin, &dead, report).await? {
        let problem = format!("its dead-letter queue `{}` does not exist", dead.name);
        let advice = "start a worker or producer of the queue, which declares both; with another \
                      suffix, see --dead-suffix";
        report.warning("dead-queue-missing", queue, &problem, advice);
    } else if let Some(depth) = depth(admin, &dead.name).await?
        && depth.ready > 0
    {
        let problem = format!("it has {} dead jobs", depth.ready);
        let advice = format!("see `queuey dead list {queue}`, then replay or purge them");
        report.warning("dead-letters", queue, &problem, &advice);
    }
    Ok(())
}

// From 4.3 on, a look takes the right to configure too.
async fn depth(admin: &Admin, queue: &str) -> Result<Option<Depth>> {
    match admin.depth(queue).await {
        Err(Error::AccessRefused { .. }) => Ok(None),
        answer => answer,
    }
}
