//! `queuey tail`.

use std::{
    pin::pin,
    time::{Duration, Instant, SystemTime},
};

use async_signal::{Signal, Signals};
use clap::Args;
use futures_lite::{StreamExt, future::or};
use queuey_rabbitmq::admin::{Admin, Passage, Trace, Traced};
use serde_json::Value;

use crate::{
    connect::Connect,
    failure::Failure,
    filter::Jobs,
    output::{Body, Lines, Table},
};

const AFTER: &str = "\
The copies come from the broker's tracer, which has to be on, on each node of a cluster:

  rabbitmqctl trace_on -p VHOST
  rabbitmqctl trace_off -p VHOST

While it is on, the broker copies every message of the vhost, which slows it: turn it off again. \
Copies come only from then on, of what passes a connection to a node where it is on. Nothing is \
taken from the queue, and workers do not notice. Copies that are not read in time are dropped, the \
oldest of 10000 first.

Examples:
  queuey tail emails --type welcome
  queuey tail emails --published --limit 100 --json | jq .job.payload";

/// After such a silence, a person is told what the reason may be.
const SILENCE: Duration = Duration::from_secs(5);

/// Watch jobs pass by without taking them, where the broker has tracing on
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Tail {
    /// The queue, by its full name
    queue: String,
    /// Also show what is published to the queue, and not only what is handed to workers
    #[arg(long)]
    published: bool,
    /// End after so many
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u64>,
    #[command(flatten)]
    jobs: Jobs,
}

impl Tail {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        if admin.depth(&self.queue).await?.is_none() {
            return Err(Failure::missing(&self.queue));
        }
        let mut end = Signals::new([
            Signal::Int,
            #[cfg(unix)]
            Signal::Term,
        ])?;
        let mut trace = admin.trace(&self.queue, self.published).await?;
        let told_to_end = async {
            end.next().await;
            Ok(())
        };
        or(told_to_end, self.watch(admin, &mut trace, connect.json)).await
    }

    async fn watch(&self, admin: &Admin, trace: &mut Trace, json: bool) -> Result<(), Failure> {
        let mut out = Out::new(json)?;
        let mut shown = 0;
        let mut hint = pin!(hint(admin, &self.queue));
        let mut is_quiet = true;
        while self.limit.is_none_or(|limit| shown < limit) {
            let next = async { trace.next().await.map(Some) };
            let traced = if is_quiet {
                let hinted = async {
                    hint.as_mut().await;
                    Ok(None)
                };
                or(next, hinted).await?
            } else {
                next.await?
            };
            is_quiet = false;
            let is_about = |it: &Traced| self.jobs.include(it.envelope.as_ref());
            if let Some(traced) = traced.filter(is_about) {
                out.show(&traced)?;
                shown += 1;
            }
        }
        Ok(())
    }
}

async fn hint(admin: &Admin, queue: &str) {
    let since = Instant::now();
    admin.pause(SILENCE).await;
    eprintln!(
        "Nothing has passed `{queue}` for {} s. Is tracing on? `rabbitmqctl trace_on -p VHOST` turns it \
         on for a node, and slows it; `rabbitmqctl trace_off -p VHOST` turns it off.",
        since.elapsed().as_secs()
    );
}

/// One line per message, at once.
enum Out {
    Table(Table),
    Lines(Lines),
}

impl Out {
    fn new(json: bool) -> Result<Self, Failure> {
        if json {
            return Ok(Self::Lines(Lines::new()));
        }
        let mut table = Table::new(&[
            ("TIME", 24),
            ("EVENT", 9),
            ("ID", 36),
            ("TYPE", 20),
            ("ATTEMPT", 7),
            ("BYTES", 0),
        ])?;
        table.flush()?;
        Ok(Self::Table(table))
    }

    fn show(&mut self, traced: &Traced) -> Result<(), Failure> {
        match self {
            Self::Table(table) => {
                table.row(&row(traced))?;
                table.flush()
            }
            Self::Lines(lines) => {
                lines.line(&Record::of(traced))?;
                lines.flush()
            }
        }
    }
}

fn time() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

fn event(traced: &Traced) -> &'static str {
    match traced.passage {
        Passage::Published => "published",
        Passage::Delivered => "delivered",
    }
}

fn row(traced: &Traced) -> [String; 6] {
    let (id, kind, attempt) = match &traced.envelope {
        Some(job) => (
            job.job_id.to_string(),
            job.job_type.clone(),
            job.attempt.to_string(),
        ),
        None => {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            let (id, kind) = (traced.message_id(), traced.message_type());
            (or_dash(id), or_dash(kind), "-".into())
        }
    };
    let size = traced.body.len().to_string();
    [time(), event(traced).into(), id, kind, attempt, size]
}

/// What passed, its body included, as --json prints it.
#[derive(serde::Serialize)]
struct Record<'a> {
    time: String,
    event: &'static str,
    bytes: usize,
    redelivered: Option<bool>,
    node: Option<&'a str>,
    headers: Value,
    #[serde(flatten)]
    body: Body<'a>,
}

impl<'a> Record<'a> {
    fn of(traced: &'a Traced) -> Self {
        Self {
            time: time(),
            event: event(traced),
            bytes: traced.body.len(),
            redelivered: traced.redelivered,
            node: traced.node.as_deref(),
            headers: traced.headers_json(),
            body: Body::of(&traced.body, traced.envelope.is_some()),
        }
    }
}
