//! `queuey move`.

use clap::Args;
use queuey_rabbitmq::admin::Admin;

use crate::{
    connect::Connect,
    failure::Failure,
    transfer::{How, Transfer},
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
    #[command(flatten)]
    what: Transfer,
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
        let how = How::Move { to: to.clone() };
        let what = format!("messages from {from} to {to}");
        self.what.run(admin, pass, &how, &what, connect.json).await
    }
}
