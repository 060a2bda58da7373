//! `queuey dead list`, and the listing `queuey peek` shares.

use clap::Args;
use queuey_rabbitmq::admin::{Admin, Letter, Pass};

use crate::{
    connect::Connect,
    failure::Failure,
    filter::Filter,
    output::{LETTER, Lines, Record, Table, letter_row},
};

const AFTER: &str = "\
What is looked at is taken from the queue, one by one, and given back in its order at the end, also \
when the tool is killed. Until then nobody else gets it, and afterwards it is marked as redelivered. \
A quorum queue counts that too (x-acquired-count; before 4.3 x-delivery-count). The dead-letter \
queues of this library have no limit for it; one made by somebody else may drop what is looked at \
too often.

Examples:
  queuey dead list emails --type welcome --error 'connection refused' --older-than 1h
  queuey dead list emails --json | jq -r .reason | sort | uniq -c";

/// List dead jobs, oldest first; takes none of them away
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct List {
    /// The queue the jobs were on, without `.dead`
    queue: String,
    /// At most so many
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u64>,
    #[command(flatten)]
    filter: Filter,
}

impl List {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        let pass = super::dead(admin, &self.queue).await?;
        list(pass, &self.filter, self.limit, connect.json).await
    }
}

/// Prints what matches, up to `limit`.
pub(crate) async fn list(
    pass: Pass,
    filter: &Filter,
    limit: Option<u64>,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let mut lines = Lines::new();
        each(pass, filter, limit, |letter| {
            lines.line(&Record::of(letter))
        })
        .await?;
        lines.end()
    } else {
        let mut table = Table::new(&LETTER)?;
        each(pass, filter, limit, |letter| table.row(&letter_row(letter))).await?;
        table.end()
    }
}

/// Shows what matches to `show`, up to `limit`, and gives everything back.
pub(crate) async fn each(
    mut pass: Pass,
    filter: &Filter,
    limit: Option<u64>,
    mut show: impl FnMut(&Letter) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut shown = 0;
    let mut outcome = Ok(());
    while outcome.is_ok() && limit.is_none_or(|limit| shown < limit) {
        let Some(letter) = pass.next().await? else {
            break;
        };
        if filter.matches(&letter) {
            outcome = show(&letter);
            shown += 1;
        }
        letter.keep();
    }
    pass.end().await?;
    outcome.map(|()| shown)
}
