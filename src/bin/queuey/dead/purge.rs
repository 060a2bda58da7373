//! `queuey dead purge`.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use queuey_rabbitmq::admin::Admin;

use crate::{
    connect::Connect,
    failure::Failure,
    filter::Filter,
    output::{counted, progress, summary},
};

const AFTER: &str = "\
What does not match stays, in its order. On a terminal you are asked; elsewhere --yes is needed.

Examples:
  queuey dead purge emails --older-than 30days --dry-run
  queuey dead export emails --older-than 30days >old.jsonl &&
    queuey dead purge emails --older-than 30days --yes";

/// Delete dead jobs for good
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Purge {
    /// The queue the jobs were on, without `.dead`
    queue: String,
    /// Only count what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    filter: Filter,
}

impl Purge {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        if !self.dry_run && !self.yes {
            self.ask()?;
        }
        let mut pass = super::dead(admin, &self.queue).await?;
        let bar = progress(pass.total().into());
        let (mut matched, mut kept) = (0, 0);
        while let Some(letter) = pass.next().await? {
            bar.inc(1);
            let matches = self.filter.matches(&letter);
            if matches {
                matched += 1;
            } else {
                kept += 1;
            }
            if matches && !self.dry_run {
                letter.remove().await?;
            } else {
                letter.keep();
            }
        }
        pass.end().await?;
        bar.finish_and_clear();
        let done = if self.dry_run {
            "would delete"
        } else {
            "deleted"
        };
        summary(
            connect.json,
            &format!(
                "{done} {matched} dead jobs of {}, {kept} others stay",
                self.queue
            ),
            &counted(self.dry_run, &[("purged", matched), ("kept", kept)]),
        )
    }

    fn ask(&self) -> Result<(), Failure> {
        if !io::stdin().is_terminal() {
            return Err(Failure::Usage(
                "purge deletes for good: say --yes, or look first with --dry-run".into(),
            ));
        }
        eprint!(
            "Delete the matching dead jobs of {} for good? [y/N] ",
            self.queue
        );
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::Failed("nothing was deleted".into())),
        }
    }
}
