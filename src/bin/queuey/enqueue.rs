//! `queuey enqueue`.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    thread,
    time::Duration,
};

use async_channel::Receiver;
use clap::Args;
use futures_lite::{StreamExt, future::poll_once};
use futures_util::stream::FuturesUnordered;
use queuey_rabbitmq::{
    Backend, Chain, Envelope, Error, QueueConfig, QueueKind, Result, Uuid, admin::Admin,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    connect::Connect,
    failure::Failure,
    output::{progress, summary},
    transfer::begin,
};

/// Publishes in flight.
const WINDOW: usize = 512;
/// Bad lines that are told one by one.
const TOLD: u64 = 20;

const AFTER: &str = "\
The queue must exist: workers and producers declare it. A line of --jsonl is a JSON object with \
`payload`, and with `job_type` unless JOB_TYPE is given; `job_id`, `priority` and `correlation_id` may \
be there too, other keys are ignored. Lines that fail are told by number; a line whose outcome is \
unknown is safe to repeat under the same `job_id`.

Examples:
  queuey enqueue emails welcome '{\"user\":7}'
  queuey enqueue emails welcome @payload.json --delay 10m --correlation-id order-7
  seq 1000 | jq -c '{payload:{user:.}}' | queuey enqueue emails welcome --jsonl -";

/// Enqueue a job, or with --jsonl many
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Enqueue {
    /// The queue
    queue: String,
    /// The type of the job, as `#[job(name = \"…\")]` names it
    #[arg(required_unless_present = "jsonl")]
    job_type: Option<String>,
    /// The job as JSON, `-` for standard input, or `@FILE`; without it, null
    #[arg(conflicts_with = "jsonl")]
    payload: Option<String>,
    /// Enqueue each line of this file, `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "job_id")]
    jsonl: Option<String>,
    /// Run it after this time, such as 90s or 10m
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    delay: Option<Duration>,
    /// With --delay: the queue is a quorum queue, so the job waits in one too
    #[arg(long, requires = "delay")]
    quorum: bool,
    /// The priority, up to the queue's maximum
    #[arg(long, value_name = "NUMBER")]
    priority: Option<u8>,
    /// What the job belongs to, for whoever reads logs
    #[arg(long, value_name = "TEXT")]
    correlation_id: Option<String>,
    /// The id, to enqueue a job again whose outcome was unknown; random by default
    #[arg(long, value_name = "UUID")]
    job_id: Option<Uuid>,
}

#[derive(Debug, Deserialize)]
struct Line {
    payload: Box<RawValue>,
    job_type: Option<String>,
    job_id: Option<Uuid>,
    priority: Option<u8>,
    correlation_id: Option<String>,
}

impl Enqueue {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        // A wait for a queue that does not exist would be confirmed, and lost when it ends.
        if admin.depth(&self.queue).await?.is_none() {
            return Err(Failure::missing(&self.queue));
        }
        if self.delay.is_some() {
            let kind = if self.quorum {
                QueueKind::Quorum
            } else {
                QueueKind::Classic
            };
            admin
                .assume(&QueueConfig::new(&self.queue).kind(kind))
                .await?;
        }
        match &self.jsonl {
            Some(file) => self.many(file, admin, connect.json).await,
            None => self.one(admin, connect.json).await,
        }
    }

    async fn one(&self, admin: &Admin, json: bool) -> Result<(), Failure> {
        let payload = match self.payload.as_deref().unwrap_or("null") {
            "-" => read("standard input", io::stdin())?,
            text => match text.strip_prefix('@') {
                Some(file) => read(file, open(file)?)?,
                None => text.into(),
            },
        };
        let payload = serde_json::from_str(&payload)
            .map_err(|error| Failure::Usage(format!("the payload is not JSON: {error}")))?;
        let job = self.job(Line {
            payload,
            job_type: None,
            job_id: self.job_id,
            priority: None,
            correlation_id: None,
        })?;
        admin.backend().publish(&job, self.delay).await?;
        let id = job.job_id.to_string();
        summary(
            json,
            &id,
            &json!({ "job_id": id, "queue": job.queue, "job_type": job.job_type }),
        )
    }

    async fn many(&self, file: &str, admin: &Admin, json: bool) -> Result<(), Failure> {
        let lines = match file {
            "-" => lines(BufReader::new(io::stdin())),
            file => lines(BufReader::new(open(file)?)),
        };
        let bar = progress(0);
        bar.unset_length();
        let mut in_flight = FuturesUnordered::new();
        let mut tally = Tally::default();
        let mut number = 0;
        while let Ok(line) = lines.recv().await {
            number += 1;
            let line = line.map_err(|error| {
                Failure::Failed(format!("cannot read line {number} of {file}: {error}"))
            })?;
            if line.trim().is_empty() {
                continue;
            }
            bar.inc(1);
            let parsed = serde_json::from_str(&line).map_err(|error| error.to_string());
            let job = match parsed.and_then(|line| self.job(line).map_err(|_| NO_TYPE.into())) {
                Ok(job) => job,
                Err(why) => {
                    tally.failed(number, &why);
                    continue;
                }
            };
            let publish =
                Box::pin(async move { (number, admin.backend().publish(&job, self.delay).await) });
            let mut done = vec![];
            let is_first = tally.enqueued == 0 && in_flight.is_empty();
            begin(&mut in_flight, &mut done, publish, is_first).await;
            // A line may be long in coming.
            while let Some(Some(ended)) = poll_once(in_flight.next()).await {
                done.push(ended);
            }
            for ended in done {
                tally.ended(ended)?;
            }
            while in_flight.len() >= WINDOW {
                if let Some(ended) = in_flight.next().await {
                    tally.ended(ended)?;
                }
            }
        }
        while let Some(ended) = in_flight.next().await {
            tally.ended(ended)?;
        }
        bar.finish_and_clear();
        let (enqueued, failed) = (tally.enqueued, tally.failed);
        summary(
            json,
            &format!(
                "enqueued {enqueued} jobs on {}, {failed} failed",
                self.queue
            ),
            &json!({ "enqueued": enqueued, "failed": failed, "failed_lines": tally.lines }),
        )?;
        match failed {
            0 => Ok(()),
            _ => Err(Failure::Partly(format!("{failed} lines were not enqueued"))),
        }
    }

    fn job(&self, line: Line) -> Result<Envelope, Failure> {
        let job_type = line.job_type.as_ref().or(self.job_type.as_ref());
        let job_type = job_type.ok_or_else(|| Failure::Usage(NO_TYPE.into()))?;
        let mut job = Envelope::raw(job_type, &self.queue, line.payload);
        job.job_id = line.job_id.unwrap_or(job.job_id);
        job.priority = line.priority.or(self.priority).unwrap_or(0);
        job.correlation_id = line.correlation_id.or(self.correlation_id.clone());
        Ok(job)
    }
}

const NO_TYPE: &str = "it has no `job_type`, and none is given on the command line";

#[derive(Debug, Default)]
struct Tally {
    enqueued: u64,
    failed: u64,
    /// The first of those that failed.
    lines: Vec<u64>,
}

impl Tally {
    /// # Errors
    /// When no later line can succeed either.
    fn ended(&mut self, (line, stored): (u64, Result<()>)) -> Result<(), Failure> {
        match stored {
            Ok(()) => self.enqueued += 1,
            Err(
                error @ (Error::Disconnected { .. } | Error::Closed | Error::Unroutable { .. }),
            ) => {
                let why = Chain(&error);
                return Err(Failure::Partly(format!(
                    "gave up at line {line}, after {} jobs: {why}",
                    self.enqueued
                )));
            }
            Err(error) => self.failed(line, &Chain(&error).to_string()),
        }
        Ok(())
    }

    fn failed(&mut self, line: u64, why: &str) {
        self.failed += 1;
        if self.failed <= TOLD {
            self.lines.push(line);
            eprintln!("line {line}: {why}");
        }
    }
}

/// The lines of `input`, read on a thread of their own: a pipe may be slow.
fn lines(input: impl BufRead + Send + 'static) -> Receiver<io::Result<String>> {
    let (sender, receiver) = async_channel::bounded(2 * WINDOW);
    thread::spawn(move || {
        for line in input.lines() {
            if sender.send_blocking(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn open(file: &str) -> Result<File, Failure> {
    File::open(file).map_err(|error| Failure::Failed(format!("cannot open {file}: {error}")))
}

fn read(name: &str, mut input: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    input
        .read_to_string(&mut text)
        .map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
    Ok(text)
}
