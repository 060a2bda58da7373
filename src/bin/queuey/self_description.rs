//! `queuey completions` and `queuey man`.

use std::io;

use clap::{Args, CommandFactory};

use crate::{Cli, failure::Failure};

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  queuey completions bash >~/.local/share/bash-completion/completions/queuey"
)]
pub(crate) struct Completions {
    shell: clap_complete::Shell,
}

/// Print the manual page
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  queuey man | man -l -\n  queuey man dead replay | man -l -")]
pub(crate) struct Man {
    /// The page of this command, such as `dead replay`
    command: Vec<String>,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        // clap_complete panics when nobody reads.
        let mut text = vec![];
        clap_complete::generate(self.shell, &mut Cli::command(), "queuey", &mut text);
        Ok(io::Write::write_all(&mut io::stdout(), &text)?)
    }
}

impl Man {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut page = Cli::command();
        page.build();
        for name in &self.command {
            let found = page.find_subcommand(name).cloned();
            page = found.ok_or_else(|| Failure::Usage(format!("there is no command `{name}`")))?;
        }
        clap_mangen::Man::new(page).render(&mut io::stdout())?;
        Ok(())
    }
}
