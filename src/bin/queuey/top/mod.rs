//! `queuey top`.

#[cfg(test)]
mod drawn;
mod history;
mod keys;
mod letters;
mod panels;
mod screen;
mod snapshot;
mod source;
mod state;
mod terminal;

use std::{
    io::{self, IsTerminal},
    pin::pin,
    time::{Duration, Instant},
};

use anstream::{AutoStream, ColorChoice};
use async_channel::{Receiver, Sender};
use async_signal::{Signal, Signals};
use clap::Args;
use futures_lite::{StreamExt, future::or};
use ratatui::crossterm::event::KeyEvent;

use crate::{connect::Connect, failure::Failure};
use keys::Action;
use snapshot::Snapshot;
use source::{Source, Wake, close, pause};
use state::{Link, Loaded, State};
use terminal::Screen;

const AFTER: &str = "\
Keys: ↑ ↓ or j k select, Enter shows the dead letters of the queue and then the story of one, r \
replays the dead letter that is selected or shown, once you have said y, q or Esc goes back and \
ends, ? tells them all.

Changes are per second, over the last ten; bars are the last minute. Dead letters are taken from \
their queue to be looked at, the first 100, and given back at once. A lost connection is made \
again. What AMQP does not tell is ?: see `queuey status --help`, also for --hold.

Examples:
  queuey top emails reports
  queuey top emails --interval 500ms --hold 30s";

/// Watch queues live on a terminal, over SSH too; look at dead jobs and replay them
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Top {
    /// The queues, without `.dead`
    #[arg(value_name = "QUEUE", required = true)]
    queues: Vec<String>,
    /// How often to ask the broker
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// Also count jobs that wait for this delay, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    hold: Vec<Duration>,
}

/// What the screen is told.
enum Event {
    Key(KeyEvent),
    Resized,
    /// The terminal tells no keys any more.
    Deaf(io::Error),
    Snapshot(Snapshot),
    Lost(Instant, String),
    Loaded(String, Loaded),
    Replayed(String),
}

impl Top {
    pub(crate) async fn run(self, connect: &Connect) -> Result<(), Failure> {
        if connect.json || !io::stdout().is_terminal() {
            return Err(Failure::Usage(
                "top draws on a terminal: for scripts, there is `queuey status --json`".into(),
            ));
        }
        let color = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let broker = connect.brokers()?.to_string();
        let admin = connect.admin().await?;
        let (events, heard) = async_channel::bounded(64);
        let (commands, commanded) = async_channel::unbounded();
        let mut state = State::new(broker, &self.queues, self.interval, color);
        let about = (&self.queues[..], &self.hold[..]);
        let source = Source::new(connect, about, self.interval, events.clone(), admin);
        let signals = Signals::new(SIGNALS)?;
        let mut screen = Screen::open()?;
        terminal::listen(events.clone());

        let mut obeying = pin!(obey(&commanded, &source, &events));
        let behind = async {
            or(source.run(), obeying.as_mut()).await;
            Ok(())
        };
        let shown = show(&mut screen, &mut state, &heard, &commands);
        let ended = or(until_signal(signals), or(shown, behind)).await;

        drop(screen);
        heard.close();
        commands.close();
        // A replay under way is better ended; killed, it may leave its job in both queues.
        or(obeying, pause(Duration::from_secs(5))).await;
        if let Some(admin) = source.admin() {
            close(&admin).await;
        }
        ended
    }
}

const SIGNALS: &[Signal] = &[
    Signal::Int,
    #[cfg(unix)]
    Signal::Term,
    #[cfg(unix)]
    Signal::Hup,
];

async fn until_signal(mut signals: Signals) -> Result<(), Failure> {
    signals.next().await;
    Ok(())
}

/// Draws, and draws again whenever something has changed, until a key says enough.
async fn show(
    screen: &mut Screen,
    state: &mut State,
    events: &Receiver<Event>,
    commands: &Sender<Action>,
) -> Result<(), Failure> {
    loop {
        screen.draw(state)?;
        let event = async { events.recv().await.ok() };
        let tick = async {
            // Ages are on the screen.
            pause(Duration::from_secs(1)).await;
            None
        };
        let mut next = or(event, tick).await;
        while let Some(event) = next {
            match event {
                Event::Key(key) => match state.key(key) {
                    Some(Action::Quit) => return Ok(()),
                    Some(action) => drop(commands.try_send(action)),
                    None => {}
                },
                Event::Resized => screen.forget()?,
                Event::Deaf(error) => return Err(Failure::Failed(format!("no keys: {error}"))),
                Event::Snapshot(snapshot) => state.take(snapshot),
                Event::Lost(at, why) => state.lost(at, why),
                Event::Loaded(queue, loaded) => state.loaded(&queue, loaded),
                Event::Replayed(text) => state.notice = Some(text),
            }
            next = events.try_recv().ok();
        }
    }
}

/// Does what keys ask for, one after another: two passes over one queue would hide from each other
/// what they have in hand.
async fn obey(commands: &Receiver<Action>, source: &Source<'_>, events: &Sender<Event>) {
    while let Ok(action) = commands.recv().await {
        let queue = match &action {
            Action::Quit => return,
            Action::Load(queue) => queue.clone(),
            Action::Replay(question) => question.queue.clone(),
        };
        let Some(admin) = source.admin() else {
            let why = "there is no connection".to_owned();
            let told = match action {
                Action::Replay(_) => Event::Replayed(format!("not replayed: {why}")),
                _ => Event::Loaded(queue, Loaded::Failed(why)),
            };
            let _ = events.send(told).await;
            continue;
        };
        if let Action::Replay(question) = &action {
            let answer = letters::replay(&admin, question).await;
            let _ = events.send(Event::Replayed(answer.answer)).await;
            source.wake(answer.lost.map_or(Wake::Look, Wake::Lost));
        }
        let answer = letters::load(&admin, &queue).await;
        let _ = events.send(Event::Loaded(queue, answer.answer)).await;
        if let Some(why) = answer.lost {
            source.wake(Wake::Lost(why));
        }
    }
}

impl State {
    fn lost(&mut self, at: Instant, why: String) {
        let since = match self.link {
            Link::Up => at,
            Link::Lost(since, _) => since,
        };
        self.link = Link::Lost(since, why);
    }
}

/// Reads an interval: a broker asked all the time would have no time for anything else.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match interval {
        it if it < Duration::from_millis(100) => Err("an interval is at least 100ms".into()),
        it => Ok(it),
    }
}
