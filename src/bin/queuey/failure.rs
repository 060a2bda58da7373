//! [`Failure`]: what went wrong, and the exit status that says so.

use std::{io, process::ExitCode};

use queuey_rabbitmq::{Chain, Error};

#[derive(Debug)]
pub(crate) enum Failure {
    Failed(String),
    Usage(String),
    Missing(String),
    Unreachable(String),
    Partly(String),
    /// The findings are told already.
    Found,
    /// Whoever reads our output has seen enough.
    Unread,
}

impl Failure {
    /// There is no queue of this name.
    pub(crate) fn missing(queue: &str) -> Self {
        Self::Missing(format!(
            "there is no queue `{queue}`: is the name right, and the vhost in the address?"
        ))
    }

    /// What went wrong, without the exit status.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Failed(text)
            | Self::Usage(text)
            | Self::Missing(text)
            | Self::Unreachable(text)
            | Self::Partly(text) => text,
            Self::Found | Self::Unread => String::new(),
        }
    }

    pub(crate) fn report(self) -> ExitCode {
        let (status, text) = match self {
            Self::Failed(text) => (1, text),
            Self::Usage(text) => (2, text),
            Self::Missing(text) => (3, text),
            Self::Unreachable(text) => (4, text),
            Self::Partly(text) => (5, text),
            Self::Found => return ExitCode::FAILURE,
            Self::Unread => return ExitCode::SUCCESS,
        };
        anstream::eprintln!("\u{1b}[1;31merror:\u{1b}[0m {text}");
        ExitCode::from(status)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = Chain(&error).to_string();
        match error {
            Error::Address(_) => Self::Usage(text),
            Error::Unroutable { .. } => Self::Missing(text),
            Error::AccessRefused { .. } | Error::Disconnected { .. } => Self::Unreachable(text),
            Error::TimedOut { action, .. } | Error::Broker { action, .. }
                if action == "connect to" =>
            {
                Self::Unreachable(format!("{text} (set AMQP_URL or --url)"))
            }
            _ => Self::Failed(text),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }
}
