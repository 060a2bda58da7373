//! `queuey`: what operators and scripts do to queues.

mod cause;
mod connect;
mod dead;
mod doctor;
mod enqueue;
mod failure;
mod filter;
mod management;
mod mv;
mod output;
mod peek;
mod queues;
#[cfg(unix)]
mod run;
mod self_description;
mod status;
mod story;
mod tail;
mod top;
mod transfer;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use queuey_rabbitmq::Runtime;

use connect::Connect;
use failure::Failure;

const AFTER: &str = "\
Examples:
  export AMQP_URL=amqp://user:password@broker.example/prod
  queuey status emails reports
  queuey doctor emails
  queuey top emails reports
  queuey dead list emails --type welcome --error timeout
  queuey dead replay emails --type welcome --rate 50
  queuey enqueue emails welcome '{\"user\":7}' --delay 10m
  queuey run emails --exec ./send-mail

Exit status:
  0  done
  1  failed; of doctor: it has found an error or a warning
  2  wrong usage
  3  a queue does not exist
  4  the broker cannot be reached, or refuses access
  5  done in part: standard error says what was not, and why";

/// Looks after the queues of queuey-rabbitmq: what waits, what is dead, and how to run it again.
///
/// All of it works over AMQP alone; status and doctor know more with --management-url. Output is a
/// table on a terminal, tab-separated lines in a pipe, and with --json one JSON object per line.
#[derive(Debug, Parser)]
#[command(name = "queuey", version, after_help = AFTER, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::Status),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Dead(dead::Dead),
    Enqueue(enqueue::Enqueue),
    Peek(peek::Peek),
    Tail(tail::Tail),
    Top(top::Top),
    Move(mv::Move),
    #[cfg(unix)]
    Run(run::Run),
    Completions(self_description::Completions),
    Man(self_description::Man),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::Top(command) => Runtime::default().block_on(Box::pin(command.run(&cli.connect))),
        #[cfg(unix)]
        Command::Run(command) => command.run(&cli.connect),
        command => Runtime::default().block_on(Box::pin(on_broker(cli.connect, command))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn on_broker(connect: Connect, command: Command) -> Result<(), Failure> {
    let admin = connect.admin().await?;
    let done = match command {
        Command::Status(command) => command.run(&admin, &connect).await,
        Command::Doctor(command) => command.run(&admin, &connect).await,
        Command::Dead(command) => command.run(&admin, &connect).await,
        Command::Enqueue(command) => command.run(&admin, &connect).await,
        Command::Peek(command) => command.run(&admin, &connect).await,
        Command::Move(command) => command.run(&admin, &connect).await,
        Command::Tail(command) => command.run(&admin, &connect).await,
        #[cfg(unix)]
        Command::Run(_) => Ok(()),
        Command::Completions(_) | Command::Man(_) | Command::Top(_) => Ok(()),
    };
    let closed = admin.close().await;
    done?;
    Ok(closed?)
}
