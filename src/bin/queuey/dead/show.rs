//! `queuey dead show`.

use clap::Args;
use queuey_rabbitmq::{Uuid, admin::Admin};

use crate::{
    connect::Connect,
    failure::Failure,
    output::{Lines, Record},
};

/// Show one dead job with its payload and headers
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  queuey dead show emails 6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab")]
pub(crate) struct Show {
    /// The queue the job was on, without `.dead`
    queue: String,
    /// Its id, as `queuey dead list` prints it
    id: Uuid,
}

impl Show {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let mut pass = super::dead(admin, &self.queue).await?;
        let mut lines = Lines::new();
        let mut found = false;
        while !found && let Some(letter) = pass.next().await? {
            let job = letter.envelope.as_ref();
            found = job.is_some_and(|job| job.job_id == self.id);
            if found {
                match connect.json {
                    true => lines.line(&Record::of(&letter))?,
                    false => lines.pretty(&Record::of(&letter))?,
                }
            }
            letter.keep();
        }
        pass.end().await?;
        if !found {
            let (queue, id) = (&self.queue, self.id);
            let text = format!("no dead job of `{queue}` has the id `{id}`");
            return Err(Failure::Failed(text));
        }
        lines.end()
    }
}
