//! `queuey move`.

use clap::Args;
use queuey_rabbitmq::admin::Admin;

use crate::{
    connect::Connect,
    failure::Failure,
    filter::Filter,
    output::{counted, summary},
    transfer::{How, Transfer, rate, transfer},
};

const AFTER: &str = "\
Each message is published to the other queue, confirmed, and only then removed from the first. A job \
names the other queue as its own from then on, so that its retries stay there; all else of it is kept, \
except headers that tell of its death. A body that is no job is moved as it is.

Examples:
  queuey move emails emails.slow --type newsletter
  queuey move emails.dead parked.emails --older-than 7days";

/// Move messages from one queue to another
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Move {
    /// The queue to take from, by its full name
    from: String,
    /// The queue to publish to, by its full name
    to: String,
    /// Only count what would be moved
    #[arg(long)]
    dry_run: bool,
    /// At most so many messages per second
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    rate: Option<f64>,
    /// At most so many messages
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u64>,
    #[command(flatten)]
    filter: Filter,
}

impl Move {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let (from, to) = (&self.from, &self.to);
        if from == to {
            return Err(Failure::Usage("the two queues are the same".into()));
        }
        if admin.depth(to).await?.is_none() {
            return Err(Failure::missing(to));
        }
        let pass = admin.pass(from).await?;
        let pass = pass.ok_or_else(|| Failure::missing(from))?;
        let what = Transfer {
            filter: &self.filter,
            limit: self.limit,
            rate: self.rate,
            dry_run: self.dry_run,
            how: How::Move { to: to.clone() },
        };
        let counts = transfer(admin, pass, what).await?;
        let (moved, kept, failed) = (counts.moved, counts.kept, counts.failed);
        let done = if self.dry_run { "would move" } else { "moved" };
        summary(
            connect.json,
            &format!("{done} {moved} messages from {from} to {to}, {kept} others stay"),
            &counted(
                self.dry_run,
                &[("moved", moved), ("kept", kept), ("failed", failed)],
            ),
        )?;
        counts.verdict("moved")
    }
}
