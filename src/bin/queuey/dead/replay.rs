//! `queuey dead replay`.

use clap::Args;
use queuey_rabbitmq::admin::Admin;

use crate::{
    connect::Connect,
    failure::Failure,
    transfer::{How, Transfer},
};

const AFTER: &str = "\
Each dead job is published to its own queue, confirmed, and only then removed from the dead-letter \
queue. Killed midway, it leaves at worst the 64 jobs in flight in both: start it again. Every message \
is passed over once, so a job that dies again meanwhile is not replayed for ever. What does not match \
stays, in its order, and so does what is not a job.

Examples:
  queuey dead replay emails --type welcome --dry-run
  queuey dead replay emails --error 'connection refused' --rate 50
  queuey dead replay emails --id 6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab";

/// Run dead jobs again
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Replay {
    /// The queue the jobs were on, without `.dead`
    queue: String,
    /// Go on with the attempt a job died at, and not with attempt 1
    #[arg(long)]
    keep_attempt: bool,
    #[command(flatten)]
    what: Transfer,
}

impl Replay {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let pass = super::dead(admin, &self.queue).await?;
        let how = How::Replay {
            keep_attempt: self.keep_attempt,
        };
        let what = format!("dead jobs of {}", self.queue);
        self.what.run(admin, pass, &how, &what, connect.json).await
    }
}
