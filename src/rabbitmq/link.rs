//! [`Link`]: a connection that is dialled again when it is lost.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use event_listener::Event;
use futures_lite::future::or;
use futures_util::future::BoxFuture;

use super::{
    Addresses, Attempt, RabbitMqOptions, Rebuilding, connection, declare::Declared, error::lost,
    live::Live, lock, reconnect::next_delay,
};
use crate::{
    Error, Result,
    latch::Latch,
    runtime::{Deadlines, client},
};

/// How long what was cut off waits before it is done again.
const PAUSE: Duration = Duration::from_millis(10);

/// A connection that ends sooner counts as a failed attempt.
const SHORT_LIVED: Duration = Duration::from_millis(100);

/// One connection of a backend, whichever is alive.
#[derive(Debug)]
pub(super) struct Link {
    role: &'static str,
    addresses: Addresses,
    options: Arc<RabbitMqOptions>,
    /// What a new connection declares before anything else.
    declared: Option<Arc<Declared>>,
    closing: Latch,
    state: Mutex<State>,
    changed: Event,
    /// Of whoever publishes on it.
    pub(super) deadlines: Arc<Deadlines>,
    frame_max: AtomicU32,
}

#[derive(Debug)]
enum State {
    /// Since when, and why the last attempt failed.
    Down(Instant, Option<String>),
    Up(Arc<Live>),
    /// For good, and why.
    GaveUp(String),
}

impl Link {
    pub(super) fn new(
        role: &'static str,
        addresses: Addresses,
        options: Arc<RabbitMqOptions>,
        declared: Option<Arc<Declared>>,
        closing: Latch,
    ) -> Arc<Self> {
        Arc::new(Self {
            role,
            addresses,
            deadlines: Deadlines::new(options.publish_timeout),
            options,
            declared,
            closing,
            state: Mutex::new(State::Down(Instant::now(), None)),
            changed: Event::new(),
            frame_max: AtomicU32::new(connection::FRAME_MAX),
        })
    }

    /// Dials once.
    pub(super) async fn dial(&self) -> Result<Arc<Live>> {
        connection::dial_any(&self.addresses, &self.options)
            .await
            .map(Arc::new)
    }

    /// Keeps a connection from now on: this one, and another under the policy when it is lost or
    /// there is none yet.
    pub(super) fn start(self: &Arc<Self>, first: Option<Arc<Live>>) {
        if let Some(live) = &first {
            self.set_up(live.clone());
        }
        client().run(self.clone().keep(first));
    }

    /// The live connection; waits while there is none.
    pub(super) async fn get(&self, action: &'static str, subject: &str) -> Result<Arc<Live>> {
        loop {
            let changed = self.changed.listen();
            match &*lock(&self.state) {
                _ if self.closing.is_raised() => return Err(Error::Closed),
                State::Up(live) if live.is_connected() => return Ok(live.clone()),
                State::GaveUp(why) => return Err(lost(action, subject, why)),
                _ => {}
            }
            or(changed, self.closing.raised()).await;
        }
    }

    /// The live connection, if there is one at the moment.
    pub(super) fn current(&self) -> Option<Arc<Live>> {
        match &*lock(&self.state) {
            State::Up(live) if live.is_connected() => Some(live.clone()),
            _ => None,
        }
    }

    /// Why nobody answered for so long.
    pub(super) fn no_answer(&self, action: &'static str, subject: &str, limit: Duration) -> Error {
        match &*lock(&self.state) {
            State::Up(live) => live.no_answer(action, subject, limit),
            // Nothing was sent in all that time.
            State::Down(since, Some(why)) if since.elapsed() >= limit => lost(action, subject, why),
            _ => Error::TimedOut {
                action,
                subject: subject.into(),
                limit,
            },
        }
    }

    /// Waits until what was cut off can be done again, or says why it cannot.
    pub(super) fn come_again<'a>(
        &'a self,
        action: &'static str,
        subject: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // A channel can be gone without its connection.
            client().sleep(PAUSE).await;
            self.get(action, subject).await.map(drop)
        })
    }

    pub(super) fn frame_max(&self) -> u32 {
        self.frame_max.load(Ordering::Relaxed)
    }

    async fn keep(self: Arc<Self>, first: Option<Arc<Live>>) {
        let mut next = first;
        let mut failures = None;
        loop {
            let live = match next.take() {
                Some(live) => live,
                None => match self.come_back(failures).await {
                    Some(live) => live,
                    None => return,
                },
            };
            let since = Instant::now();
            self.set_up(live.clone());
            let closed = async {
                self.closing.raised().await;
                None
            };
            let watched = async { Some(live.watch(self.role).await) };
            let Some(why) = or(closed, watched).await else {
                return;
            };
            let (role, addresses) = (self.role, &self.addresses);
            log::warn!("the {role} connection to {addresses} is lost: {why}");
            failures = Some(u32::from(since.elapsed() < SHORT_LIVED));
            self.set(State::Down(Instant::now(), None));
        }
    }

    /// Dials under the policy, until it gives up or the backend is closed; `failures` is `None` where
    /// there was no connection yet, and no policy can be against the first.
    async fn come_back(&self, failures: Option<u32>) -> Option<Arc<Live>> {
        let (role, addresses) = (self.role, &self.addresses);
        let mut delay = failures.is_none().then_some(Duration::ZERO);
        let mut failures = failures.unwrap_or(0);
        let mut error = None;
        loop {
            let pause = match delay.take() {
                Some(delay) => Ok(delay),
                None => self.pause(failures, error.as_ref()),
            };
            let delay = match pause {
                Ok(delay) => delay,
                Err(why) => {
                    log::error!("the {role} connection to {addresses}: {why}");
                    self.set(State::GaveUp(why));
                    return None;
                }
            };
            let dialled = async {
                client().sleep(delay).await;
                let live = self.dial().await?;
                if let Some(declared) = &self.declared {
                    declared.again(&live).await;
                }
                Ok(live)
            };
            let closed = async {
                self.closing.raised().await;
                Err(Error::Closed)
            };
            match or(closed, dialled).await {
                Ok(live) => {
                    log::info!("the {role} connection to {addresses} is there");
                    return Some(live);
                }
                Err(Error::Closed) => return None,
                Err(failed) => {
                    let level = match failed {
                        // Somebody has to do something about it.
                        Error::AccessRefused { .. } => log::Level::Error,
                        _ => log::Level::Warn,
                    };
                    log::log!(
                        level,
                        "cannot make the {role} connection: {}",
                        failed.chain()
                    );
                    if let State::Down(_, why) = &mut *lock(&self.state) {
                        *why = Some(failed.chain().to_string());
                    }
                    failures = failures.saturating_add(1);
                    error = Some(failed);
                }
            }
        }
    }

    /// How long to wait before the next attempt, or why there is to be none.
    fn pause(&self, failures: u32, error: Option<&Error>) -> Result<Duration, String> {
        let gave_up = |error: &Error| {
            let error = error.chain();
            Err(format!("gave up after {failures} attempts: {error}"))
        };
        if let Some(error) = error
            && error.is_permanent()
        {
            return gave_up(error);
        }
        let attempt = Attempt {
            failures,
            error,
            rebuilding: Rebuilding::Connection,
        };
        match next_delay(self.options.reconnect.as_deref(), &attempt)? {
            Some(delay) => Ok(delay),
            None => match error {
                Some(error) => gave_up(error),
                None => Err("the connection is lost and is not to come back".into()),
            },
        }
    }

    fn set_up(&self, live: Arc<Live>) {
        let negotiated = live.connection.configuration().frame_max();
        self.frame_max.store(negotiated, Ordering::Relaxed);
        self.set(State::Up(live));
    }

    fn set(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify(usize::MAX);
        // What was in flight on a lost connection is answered by nobody else.
        self.deadlines.look();
    }
}
