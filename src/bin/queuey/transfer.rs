//! [`Transfer`]: publish what matches, confirmed, and then remove it from where it was.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use clap::Args;
use futures_lite::{
    StreamExt,
    future::{or, poll_once},
};
use futures_util::{future::BoxFuture, stream::FuturesUnordered};
use queuey_rabbitmq::{
    Chain, Error, Result,
    admin::{Admin, Letter, Pass},
};

use crate::{
    failure::Failure,
    filter::Filter,
    output::{counted, progress, summary},
};

/// Publishes in flight.
const WINDOW: usize = 64;
/// Failures that are told one by one.
const TOLD: u64 = 10;

/// What is transferred, and how fast.
#[derive(Debug, Args)]
pub(crate) struct Transfer {
    /// Only count what would be done
    #[arg(long)]
    dry_run: bool,
    /// At most so many messages per second
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    rate: Option<f64>,
    /// At most so many messages
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u64>,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Debug, Clone)]
pub(crate) enum How {
    /// Jobs alone, to their own queues.
    Replay { keep_attempt: bool },
    /// Everything, to this queue.
    Move { to: String },
}

#[derive(Debug, Default)]
struct Counts {
    moved: u64,
    kept: u64,
    failed: u64,
}

/// Whether one message is where it was meant to be; if not, which and why.
pub(crate) type Outcome = Result<(), (String, Error)>;
type InFlight<'a> = FuturesUnordered<BoxFuture<'a, Outcome>>;

impl Transfer {
    /// Does it with `what`, of which `pass` finds the messages, and tells what came of it.
    pub(crate) async fn run(
        &self,
        admin: &Admin,
        pass: Pass,
        how: &How,
        what: &str,
        json: bool,
    ) -> Result<(), Failure> {
        let Counts {
            moved,
            kept,
            failed,
        } = self.all(admin, pass, how).await?;
        let (verb, done) = match how {
            How::Replay { .. } => ("replay", "replayed"),
            How::Move { .. } => ("move", "moved"),
        };
        let did = match self.dry_run {
            true => format!("would {verb}"),
            false => done.into(),
        };
        let text = format!("{did} {moved} {what}, {kept} others stay");
        let counts = [(done, moved), ("kept", kept), ("failed", failed)];
        summary(json, &text, &counted(self.dry_run, &counts))?;
        match failed {
            0 => Ok(()),
            _ => Err(Failure::Partly(format!(
                "{failed} messages could not be {done} and stay where they were"
            ))),
        }
    }

    /// Publishes what matches, each message once, and removes what is stored. Killed midway, it leaves
    /// at worst what is in flight twice.
    async fn all(&self, admin: &Admin, mut pass: Pass, how: &How) -> Result<Counts, Failure> {
        let total = u64::from(pass.total());
        let bar = progress(total);
        let mut counts = Counts::default();
        let mut in_flight = InFlight::new();
        let (mut seen, mut started) = (0, 0);
        let began = Instant::now();
        while self.limit.is_none_or(|limit| started < limit) {
            let mut done = vec![];
            let next = until(&mut in_flight, &mut done, pass.next()).await;
            counts.add(done)?;
            let Some(letter) = next? else { break };
            bar.inc(1);
            seen += 1;
            if !self.is_about(how, &letter) {
                letter.keep();
                counts.kept += 1;
                continue;
            }
            started += 1;
            if self.dry_run {
                letter.keep();
                counts.moved += 1;
                continue;
            }
            let mut done = vec![];
            if let Some(rate) = self.rate {
                let due = Duration::try_from_secs_f64((started - 1) as f64 / rate);
                let due = due.unwrap_or(Duration::MAX).saturating_sub(began.elapsed());
                until(&mut in_flight, &mut done, admin.pause(due)).await;
            }
            let publish = Box::pin(one(admin, how, letter));
            begin(&mut in_flight, &mut done, publish, started == 1).await;
            while in_flight.len() >= WINDOW {
                done.extend(in_flight.next().await);
            }
            counts.add(done)?;
        }
        while let Some(ended) = in_flight.next().await {
            counts.add(vec![ended])?;
        }
        counts.kept += total - seen;
        bar.finish_and_clear();
        pass.end().await?;
        Ok(counts)
    }

    fn is_about(&self, how: &How, letter: &Letter) -> bool {
        let is_possible = match how {
            How::Replay { .. } => letter.envelope.is_some(),
            How::Move { .. } => true,
        };
        is_possible && self.filter.matches(letter)
    }
}

/// Stores `letter` where it is to be, and only then removes it from where it was.
pub(crate) async fn one(admin: &Admin, how: &How, letter: Letter) -> Outcome {
    let stored = match how {
        How::Replay { keep_attempt } => admin.replay(&letter, *keep_attempt).await,
        How::Move { to } => admin.copy(&letter, to).await,
    };
    let id = letter.message_id().unwrap_or("without an id").to_owned();
    let settled = match stored {
        Ok(()) => letter.remove().await,
        Err(error) => {
            letter.keep();
            Err(error)
        }
    };
    settled.map_err(|error| (id, error))
}

/// Begins `publish`, so that publishes go out in the order of the queue. The first of all is waited
/// for: it opens the channel, and others would wait for that in any order.
pub(crate) async fn begin<'a, T>(
    in_flight: &mut FuturesUnordered<BoxFuture<'a, T>>,
    done: &mut Vec<T>,
    mut publish: BoxFuture<'a, T>,
    is_first: bool,
) {
    if is_first {
        return done.push(publish.await);
    }
    match poll_once(&mut publish).await {
        Some(ended) => done.push(ended),
        None => in_flight.push(publish),
    }
}

/// The answer of `work`; what of `in_flight` ends before it goes to `done`.
async fn until<T>(
    in_flight: &mut InFlight<'_>,
    done: &mut Vec<Outcome>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    loop {
        let worked = async { Ok(work.as_mut().await) };
        let ended = async {
            match in_flight.next().await {
                Some(ended) => Err(ended),
                None => std::future::pending().await,
            }
        };
        match or(worked, ended).await {
            Ok(answer) => return answer,
            Err(ended) => done.push(ended),
        }
    }
}

impl Counts {
    /// # Errors
    /// When nothing can succeed any more: what is in hand is back on its queue.
    fn add(&mut self, done: Vec<Outcome>) -> Result<(), Failure> {
        for outcome in done {
            match outcome {
                Ok(()) => self.moved += 1,
                Err((_, error @ (Error::Disconnected { .. } | Error::Closed))) => {
                    return Err(error.into());
                }
                Err((id, error)) => {
                    self.failed += 1;
                    if self.failed <= TOLD {
                        eprintln!("message {id} stays: {}", Chain(&error));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads a rate: more than none.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 => Ok(rate),
        Ok(_) => Err("a rate is more than 0 per second".into()),
        Err(error) => Err(format!("{error}")),
    }
}
