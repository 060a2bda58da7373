//! `queuey doctor`.

mod arguments;
mod broker;
mod finding;
mod in_hand;
mod policies;
mod queue;
mod rights;
mod vhost;

use std::time::Duration;

use clap::Args;
use queuey_rabbitmq::{DEFAULT_MAX_PRIORITY, QueueConfig, QueueKind, admin::Admin};

use crate::{connect::Connect, failure::Failure, queues::queues};
use finding::Report;

const AFTER: &str = "\
It connects as an application does, and asks what an application would need, as the user in the address: \
use the application's. Nothing is created, deleted or taken from a queue; that a queue is declared as \
workers do is asked of the broker by declaring it once more, and only where it exists.

Each finding is an error (jobs fail or are lost, or nothing runs), a warning, or a note, and has a name in \
brackets that stays the same. The exit status is 1 if there is an error or a warning, which makes it a \
check to run after a deployment. What could not be looked at is told on standard error.

With --management-url, also alarms, policies, hold queues, jobs that are in hand for long, and the vhost; \
and without names, every job queue of the vhost is looked at, whoever's it is. The user needs the tag \
`monitoring`. No API tells the `consumer_timeout` of rabbitmq.conf.

Examples:
  queuey doctor emails reports
  queuey doctor orders --quorum
  queuey doctor --management-url http://monitor:password@broker.example:15672
  queuey doctor emails --json | jq -r 'select(.severity == \"error\") | .problem'";

/// Say what is wrong with queues and their broker, and what to do about it
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Doctor {
    /// The queues, without `.dead`; with the management API and without names, all of the vhost
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// The application declares them with `kind = "quorum"`
    #[arg(long)]
    quorum: bool,
    /// The application declares them with this `max_priority`, 0 for none
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_MAX_PRIORITY)]
    max_priority: u8,
    /// The application declares them with this `message_ttl`
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    message_ttl: Option<Duration>,
    /// Tell of jobs that a worker has in hand for longer than this
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        value_parser = humantime::parse_duration
    )]
    in_hand: Duration,
}

impl Doctor {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let mut report = Report::default();
        let terms = admin.terms().await?;
        broker::check(&terms, self.quorum, &mut report);
        let mut why = "needs --management-url";
        let api = match connect.management()? {
            Some(api) => match queues(&api).await {
                Ok(known) => Some((api, known)),
                Err(error) => {
                    let advice = "give the address of the management plugin and a user with the \
                                  tag `monitoring`";
                    report.warning("management-api", "broker", &error.to_string(), advice);
                    why = "the management API does not tell";
                    None
                }
            },
            None => None,
        };
        let known = api.as_ref().map_or(&[][..], |(_, known)| known);
        let mut looked_at: Vec<_> = self
            .queues
            .iter()
            .map(|name| self.config(name, self.quorum))
            .collect();
        if looked_at.is_empty() {
            let jobs = known.iter().filter(|it| it.has_jobs(admin.backend()));
            looked_at.extend(jobs.map(|it| self.config(&it.name, it.kind == "quorum")));
        }
        for config in &looked_at {
            queue::check(admin, config, &mut report).await?;
        }
        if looked_at.iter().any(|it| it.kind == QueueKind::Quorum) {
            rights::check_ladder(admin, &mut report).await?;
        }
        if looked_at.is_empty() {
            let no_queues = match api {
                Some(_) => "the vhost has none",
                None => "needs their names, or --management-url",
            };
            report.not_checked("queues", no_queues);
        }
        match &api {
            Some((api, known)) => {
                policies::check(admin, &terms, &looked_at, known, &mut report);
                in_hand::check(api, &looked_at, self.in_hand, &mut report).await;
                vhost::check(api, &mut report).await;
            }
            None => {
                for what in ["policies", "hold queues", "jobs in hand", "the vhost"] {
                    report.not_checked(what, why);
                }
            }
        }
        // At last: a blocked connection is good for nothing more.
        broker::check_publishing(admin, &mut report).await?;
        report.print(connect.json)
    }

    fn config(&self, name: &str, is_quorum: bool) -> QueueConfig {
        let mut config = QueueConfig::new(name).max_priority(self.max_priority);
        config.message_ttl = self.message_ttl;
        config.kind(match is_quorum {
            true => QueueKind::Quorum,
            false => QueueKind::Classic,
        })
    }
}
