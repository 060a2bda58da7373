//! [`Run`]: the options of `queuey run`.

use std::{ffi::OsString, time::Duration};

use clap::{Args, ValueEnum};
use humantime::parse_duration;
use queuey_rabbitmq::{Backoff, QueueConfig, QueueKind, RetryPolicy};

const AFTER: &str = "\
The program gets the payload of the job, byte for byte, on standard input, and in its environment \
QUEUEY_JOB_ID, QUEUEY_JOB_TYPE, QUEUEY_QUEUE, QUEUEY_ATTEMPT, QUEUEY_MAX_ATTEMPTS, QUEUEY_DEFERRALS, \
QUEUEY_PRIORITY, QUEUEY_ENQUEUED_AT (Unix milliseconds), QUEUEY_REDELIVERED (true when this run may \
repeat another) and, if there is one, QUEUEY_CORRELATION_ID. How it ends decides what becomes of the job:

  0             done
  75            failed for now (EX_TEMPFAIL): again after a delay, until its attempts are used up
  100           failed for good: moved to QUEUE.dead at once
  other,        as 75
  or a signal
  0 or 75, and  not now: the same attempt again after this time, ahead of the backlog;
  `defer: 30s`  written as in `echo 'defer: 30s' >&$QUEUEY_CONTROL_FD`

The last 1000 bytes of its standard error, or else of its output, go into the record of the failure \
(see `queuey dead show`). Programs may run more than once per job: make them idempotent.

At SIGTERM or Ctrl-C no more jobs are started. Programs have until --grace to end, then get SIGTERM, \
and are killed at --deadline or at a second signal. What was killed, or ended by SIGTERM (status 143 \
counts as that), gives its job back with the attempt it had. A program that runs into --timeout gets \
SIGTERM and five seconds later SIGKILL, with all processes of its group.

The queue must exist as workers of the library declare it, unless --declare is given; where it is a \
quorum queue or has other priorities, say so. Its dead-letter queue is created if there is none.

Under systemd, readiness, status and stop are reported to NOTIFY_SOCKET, and the watchdog is fed while \
the connection to the broker is up. A job that takes longer than 30 minutes needs a broker that waits \
as long for its ack: see README.md, Outages.

Examples:
  queuey run emails --exec ./send-mail --verbose
  queuey run thumbnails --concurrency 4 --timeout 2m --type resize --exec /usr/local/bin/resize
  queuey run hooks --declare --max-attempts 10 --exec sh -c 'curl -sf --data @- http://[::1]/hook'";

/// Run a program for each job of a queue
#[derive(Debug, Args)]
#[command(
    after_help = AFTER,
    override_usage = "queuey run [OPTIONS] <QUEUE> --exec <PROGRAM> [ARGUMENT]..."
)]
pub(crate) struct Run {
    /// The queue
    queue: String,
    /// The program and its arguments: all that follows
    #[arg(
        long,
        required = true,
        num_args = 1..,
        allow_hyphen_values = true,
        value_names = ["PROGRAM", "ARGUMENT"]
    )]
    pub(super) exec: Vec<OsString>,
    /// Run only jobs of this type, or of several; others are dead-lettered. By default, of any type
    #[arg(long = "type", value_name = "JOB_TYPE")]
    pub(super) types: Vec<String>,
    /// How many programs may run at once; no more jobs than that are prefetched
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) concurrency: u16,
    /// How long the program may run; for ever by default
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// How often a job is tried, the first time included
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: u32,
    /// The delay before the second attempt
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    retry_delay: Duration,
    /// How the delay goes on
    #[arg(long, value_enum, default_value_t = Growth::Exponential)]
    backoff: Growth,
    /// The longest delay between two attempts
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    max_retry_delay: Duration,
    /// How long running programs are waited for at a stop, before they are told to end
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration)]
    pub(super) grace: Duration,
    /// How long in all, before they are killed and their jobs given back
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parse_duration)]
    pub(super) deadline: Duration,
    /// Do not pass on what the programs print
    #[arg(long)]
    pub(super) quiet: bool,
    /// Create the queue if there is none; by default it must exist
    #[arg(long)]
    declare: bool,
    /// The queue is a quorum queue
    #[arg(long)]
    quorum: bool,
    /// The highest priority of the queue, as it was declared; 0 for none
    #[arg(long, value_name = "NUMBER", default_value_t = queuey_rabbitmq::DEFAULT_MAX_PRIORITY)]
    max_priority: u8,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Growth {
    /// Doubling, and then anything between nothing and that
    Exponential,
    /// Always the same
    Fixed,
}

impl Run {
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    pub(super) fn may_exist_only(&self) -> bool {
        !self.declare
    }

    pub(super) fn config(&self) -> QueueConfig {
        let kind = match self.quorum {
            true => QueueKind::Quorum,
            false => QueueKind::Classic,
        };
        let backoff = match self.backoff {
            Growth::Fixed => Backoff::Fixed(self.retry_delay),
            Growth::Exponential => {
                Backoff::exponential_with(self.retry_delay, 2.0, self.max_retry_delay, true)
            }
        };
        QueueConfig::new(&self.queue)
            .kind(kind)
            .max_priority(self.max_priority)
            .prefetch(self.concurrency)
            .retry(RetryPolicy::new(self.max_attempts, backoff))
    }
}
