//! `queuey status`.

use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use clap::Args;
use queuey_rabbitmq::admin::{Admin, Depth};
use serde_json::{Value, json};

use crate::{
    connect::Connect,
    failure::Failure,
    output::{Lines, Table, age},
    queues::{Queue, Role, queues},
};

const AFTER: &str = "\
AMQP tells how many messages of a queue are ready and how many consumers it has. The rest takes the \
management API (--management-url): which queues there are, how many jobs are in the hands of workers \
(UNACKED), how many wait for their time and when the next of them is due at the latest, and how many \
jobs per second are published, delivered and acked. Its numbers are some seconds old.

Without it, name the delays in use with --hold, and jobs that wait for so long are counted. Jobs of \
quorum queues wait in queues that all share, and are not counted by queue.

Examples:
  queuey status emails reports
  queuey status emails --hold 1s --hold 5m
  queuey status --management-url http://monitor:password@broker.example:15672
  test \"$(queuey status emails --json | jq .dead)\" = 0";

/// Show how many jobs are ready, waiting and dead, and how many consumers there are
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Status {
    /// The queues, without `.dead`; with the management API and without names, all of the vhost
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Also count jobs that wait for this delay, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    hold: Vec<Duration>,
}

/// What is known of a queue.
struct Row {
    queue: String,
    depth: Depth,
    dead: Option<u32>,
    waiting: Option<u64>,
    /// Of the waiting jobs, the next one at the latest.
    due_ms: Option<u64>,
    unacked: Option<u64>,
    /// Published, delivered and acked per second.
    rates: [Option<f64>; 3],
}

impl Status {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let known = match connect.management()? {
            Some(management) => Some(queues(&management).await?),
            None if self.queues.is_empty() => {
                return Err(Failure::Usage(
                    "AMQP does not tell which queues there are: name them, or give \
                     --management-url"
                        .into(),
                ));
            }
            None => None,
        };
        let mut names = self.queues.clone();
        if names.is_empty() {
            let jobs = known.iter().flatten();
            let jobs = jobs.filter(|queue| queue.has_jobs(admin.backend()));
            names = jobs.map(|queue| queue.name.clone()).collect();
        }
        let mut missing = vec![];
        let mut rows = vec![];
        for queue in names {
            match self.row(admin, &queue, known.as_deref()).await? {
                Some(row) => rows.push(row),
                // Else it was deleted a moment ago.
                None if self.queues.contains(&queue) => missing.push(format!("`{queue}`")),
                None => {}
            }
        }
        if connect.json {
            let mut lines = Lines::new();
            for row in rows {
                lines.line(&row.json())?;
            }
            lines.end()?;
        } else {
            table(&rows, known.is_some())?;
            if known.is_none() && stderr().is_terminal() {
                eprintln!(
                    "AMQP does not tell what waits (see --hold) and what workers have in hand: \
                     see --management-url."
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

    async fn row(
        &self,
        admin: &Admin,
        queue: &str,
        known: Option<&[Queue]>,
    ) -> Result<Option<Row>, Failure> {
        let backend = admin.backend();
        let Some(depth) = admin.depth(queue).await? else {
            return Ok(None);
        };
        let dead = admin.depth(&backend.dead_queue_name(queue)).await?;
        let mut row = Row {
            queue: queue.into(),
            depth,
            dead: dead.map(|dead| dead.ready),
            waiting: None,
            due_ms: None,
            unacked: None,
            rates: [None; 3],
        };
        let this = |it: &&Queue| it.name == queue;
        if let Some((known, this)) = known.and_then(|it| Some((it, it.iter().find(this)?))) {
            row.unacked = this.messages_unacknowledged;
            row.rates = ["publish", "deliver_get", "ack"].map(|it| this.rate(it));
            if this.kind != "quorum" {
                let holds = known.iter().filter_map(|it| match it.role(backend) {
                    Role::Hold(of, ms) if of == queue => Some((it.messages, ms)),
                    _ => None,
                });
                row.waiting = holds.clone().map(|(messages, _)| messages).sum();
                let due = holds.filter(|&(messages, _)| messages > Some(0));
                row.due_ms = due.map(|(_, ms)| ms).min();
            }
        } else if !self.hold.is_empty() {
            let mut waiting = 0;
            for delay in &self.hold {
                let ttl = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                let held = admin.depth(&backend.hold_queue_name(queue, ttl)).await?;
                waiting += held.map_or(0, |held| u64::from(held.ready));
            }
            row.waiting = Some(waiting);
        }
        Ok(Some(row))
    }
}

impl Row {
    fn json(&self) -> Value {
        let [published, delivered, acked] = self.rates;
        json!({
            "queue": self.queue, "ready": self.depth.ready, "consumers": self.depth.consumers,
            "dead": self.dead, "waiting": self.waiting, "due_within_ms": self.due_ms,
            "unacked": self.unacked, "publish_per_second": published,
            "deliver_per_second": delivered, "ack_per_second": acked,
        })
    }
}

/// Columns that only the management API fills are left out without it.
fn table(rows: &[Row], with_management: bool) -> Result<(), Failure> {
    let width = rows.iter().map(|row| row.queue.len()).max();
    let mut columns = vec![
        ("QUEUE", width.unwrap_or(0).max(5)),
        ("READY", 9),
        ("CONSUMERS", 9),
        ("DEAD", 9),
        ("WAITING", if with_management { 9 } else { 0 }),
    ];
    if with_management {
        columns.extend([("DUE", 6), ("UNACKED", 9)]);
        columns.extend([("PUBLISH/s", 9), ("DELIVER/s", 9), ("ACK/s", 0)]);
    }
    let mut table = Table::new(&columns)?;
    for row in rows {
        let mut cells = vec![
            row.queue.clone(),
            row.depth.ready.to_string(),
            row.depth.consumers.to_string(),
            row.dead.map_or("-".into(), |dead| dead.to_string()),
            or_unknown(row.waiting),
        ];
        if with_management {
            cells.push(match (row.due_ms, row.waiting) {
                (Some(ms), _) => format!("<{}", age(Duration::from_millis(ms.max(1000)))),
                (None, Some(_)) => "-".into(),
                (None, None) => "?".into(),
            });
            cells.push(or_unknown(row.unacked));
            let rates = row.rates.iter();
            cells.extend(rates.map(|rate| or_unknown(rate.map(|it| format!("{it:.1}")))));
        }
        table.row(&cells)?;
    }
    table.end()
}

fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or("?".into(), |it| it.to_string())
}
