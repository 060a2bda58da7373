//! `queuey status`.

use std::time::Duration;

use clap::Args;
use queuey_rabbitmq::admin::Admin;
use serde_json::json;

use crate::{
    connect::Connect,
    failure::Failure,
    output::{Lines, Table},
};

const AFTER: &str = "\
AMQP tells how many messages of a queue are ready and how many consumers it has. It does not tell \
which queues there are, how many jobs are in the hands of workers, or which hold queues exist: name \
the delays in use with --hold, and jobs that wait for so long are counted too. Jobs of quorum queues \
wait in queues that all share, and are not counted by queue.

Examples:
  queuey status emails reports
  queuey status emails --hold 1s --hold 5m
  test \"$(queuey status emails --json | jq .dead)\" = 0";

/// Show how many jobs are ready and dead, and how many consumers there are
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Status {
    /// The queues, without `.dead`
    #[arg(value_name = "QUEUE", required = true)]
    queues: Vec<String>,
    /// Also count jobs that wait for this delay, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    hold: Vec<Duration>,
}

impl Status {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let backend = admin.backend();
        let mut missing = vec![];
        let mut rows = vec![];
        for queue in &self.queues {
            let Some(depth) = admin.depth(queue).await? else {
                missing.push(format!("`{queue}`"));
                continue;
            };
            let dead = admin.depth(&backend.dead_queue_name(queue)).await?;
            let mut waiting = (!self.hold.is_empty()).then_some(0);
            for &delay in &self.hold {
                let ttl = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                let held = admin.depth(&backend.hold_queue_name(queue, ttl)).await?;
                waiting = waiting.map(|sum| sum + held.map_or(0, |held| held.ready));
            }
            rows.push((queue, depth, dead.map(|dead| dead.ready), waiting));
        }
        if connect.json {
            let mut lines = Lines::new();
            for (queue, depth, dead, waiting) in rows {
                lines.line(&json!({
                    "queue": queue, "ready": depth.ready, "consumers": depth.consumers,
                    "dead": dead, "waiting": waiting, "unacked": null,
                }))?;
            }
            lines.end()?;
        } else {
            let width = self
                .queues
                .iter()
                .map(String::len)
                .max()
                .unwrap_or(0)
                .max(5);
            let mut table = Table::new(&[
                ("QUEUE", width),
                ("READY", 9),
                ("CONSUMERS", 9),
                ("DEAD", 9),
                ("WAITING", 0),
            ])?;
            let or_unknown = |number: Option<u32>| number.map_or("?".into(), |it| it.to_string());
            for (queue, depth, dead, waiting) in rows {
                table.row(&[
                    queue.clone(),
                    depth.ready.to_string(),
                    depth.consumers.to_string(),
                    dead.map_or("-".into(), |dead| dead.to_string()),
                    or_unknown(waiting),
                ])?;
            }
            table.end()?;
            if self.hold.is_empty() && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
                eprintln!(
                    "AMQP does not tell what waits (see --hold) and what workers have in hand."
                );
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Failure::Missing(format!(
                "there is no queue {}: is the name right, and the vhost in the address?",
                missing.join(", ")
            ))),
        }
    }
}
