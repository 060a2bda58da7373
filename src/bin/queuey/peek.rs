//! `queuey peek`.

use clap::Args;
use queuey_rabbitmq::admin::Admin;

use crate::{connect::Connect, dead::list, failure::Failure, filter::Filter};

const AFTER: &str = "\
The queue may be any: of jobs, dead letters or waits. What is looked at is taken from the queue and \
given back in its order, so workers get it a moment later, marked as redelivered.

Examples:
  queuey peek emails
  queuey peek emails.deferred.30000 --limit 100 --json";

/// Look at what is next on a queue; takes none of it away
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Peek {
    /// The queue, by its full name
    queue: String,
    /// At most so many
    #[arg(long, default_value_t = 10, value_name = "NUMBER")]
    limit: u64,
    #[command(flatten)]
    filter: Filter,
}

impl Peek {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let pass = admin.pass(&self.queue).await?;
        let pass = pass.ok_or_else(|| Failure::missing(&self.queue))?;
        list(pass, &self.filter, Some(self.limit), connect.json).await
    }
}
