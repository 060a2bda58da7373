//! `queuey dead show`.

use std::io::{self, Write};

use clap::Args;
use queuey_rabbitmq::{Uuid, admin::Admin};

use crate::{connect::Connect, failure::Failure, output::Record, story::story};

const AFTER: &str = "\
Examples:
  queuey dead show emails 6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab
  queuey dead show emails 6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab --json | jq .failure.chain";

/// Tell the story of one dead job: how it failed, where, how often, and what it was to do
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Show {
    /// The queue the job was on, without `.dead`
    queue: String,
    /// Its id, as `queuey dead list` prints it
    id: Uuid,
}

impl Show {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let mut pass = super::dead(admin, &self.queue).await?;
        let mut found = false;
        let mut told = String::new();
        while !found && let Some(letter) = pass.next().await? {
            let job = letter.envelope.as_ref();
            found = job.is_some_and(|job| job.job_id == self.id);
            if found {
                told = match connect.json {
                    true => serde_json::to_string(&Record::of(&letter)).map_err(io::Error::from)?,
                    false => story(&letter),
                };
            }
            letter.keep();
        }
        pass.end().await?;
        if !found {
            let (queue, id) = (&self.queue, self.id);
            let text = format!("no dead job of `{queue}` has the id `{id}`");
            return Err(Failure::Failed(text));
        }
        Ok(writeln!(io::stdout(), "{}", told.trim_end())?)
    }
}
