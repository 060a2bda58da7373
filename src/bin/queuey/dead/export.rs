//! `queuey dead export`.

use clap::Args;
use queuey_rabbitmq::admin::Admin;

use super::list::each;
use crate::{
    failure::Failure,
    filter::Filter,
    output::{Lines, Record},
};

const AFTER: &str = "\
Each line is a JSON object with `reason`, `headers`, and `job`: the body as it is. A body that is not \
a job is in `body_base64`. The jobs stay where they are: see `queuey dead purge`.

Examples:
  queuey dead export emails >dead.jsonl
  jq -c .job dead.jsonl | queuey enqueue emails --jsonl -";

/// Print dead jobs whole, one JSON object per line; takes none of them away
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Export {
    /// The queue the jobs were on, without `.dead`
    queue: String,
    #[command(flatten)]
    filter: Filter,
}

impl Export {
    pub(crate) async fn run(self, admin: &Admin) -> Result<(), Failure> {
        let pass = super::dead(admin, &self.queue).await?;
        let mut lines = Lines::new();
        each(pass, &self.filter, None, |letter| {
            lines.line(&Record::of(letter))
        })
        .await?;
        lines.end()
    }
}
