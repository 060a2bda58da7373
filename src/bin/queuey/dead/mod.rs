//! `queuey dead`.

mod export;
mod list;
mod purge;
mod replay;
mod show;

use clap::Subcommand;
use queuey_rabbitmq::admin::{Admin, Pass};

pub(crate) use list::list;

use crate::{connect::Connect, failure::Failure};

/// Look at the dead jobs of a queue, run them again, or delete them
#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    List(list::List),
    Show(show::Show),
    Export(export::Export),
    Purge(purge::Purge),
    Replay(replay::Replay),
}

impl Dead {
    pub(crate) async fn run(self, admin: &Admin, connect: &Connect) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(admin, connect).await,
            Self::Show(command) => command.run(admin, connect).await,
            Self::Export(command) => command.run(admin).await,
            Self::Purge(command) => command.run(admin, connect).await,
            Self::Replay(command) => command.run(admin, connect).await,
        }
    }
}

/// A pass over the dead-letter queue of `queue`.
async fn dead(admin: &Admin, queue: &str) -> Result<Pass, Failure> {
    let dead = admin.backend().dead_queue_name(queue);
    let pass = admin.pass(&dead).await?;
    pass.ok_or_else(|| Failure::missing(&dead))
}
