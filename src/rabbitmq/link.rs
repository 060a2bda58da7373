//! [`Link`]: a connection that is dialled again when it is lost.

use std::{
    convert::Infallible,
    future::{self, Future},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use async_channel::Receiver;
use async_lock::OnceCell;
use event_listener::Event;
use futures_lite::{StreamExt, future::or};
use futures_util::future::BoxFuture;
use lapin::{Channel, Connection};

use super::{
    Addresses, Attempt, RabbitMqOptions, Rebuilding, connection, declare::Declared, error::broker,
    lock, reconnect::next_delay,
};
use crate::{
    Error, Result,
    latch::Latch,
    runtime::{Returns, client},
};

/// How long the broker may take for what is answered at once.
const ANSWER: Duration = Duration::from_secs(30);

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
    frame_max: AtomicU32,
}

#[derive(Debug)]
enum State {
    Down,
    Up(Arc<Live>),
    /// For good, and why.
    GaveUp(String),
}

/// A connection, while it lasts.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) connection: Connection,
    pub(super) returns: Arc<Returns>,
    /// Declared on this connection.
    pub(super) ladders: OnceCell<()>,
    /// Closed when lapin lets go of the socket.
    socket: Receiver<Infallible>,
    /// lapin has said so, whatever becomes of the socket.
    over: Latch,
    blocked: Mutex<Option<String>>,
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
            options,
            declared,
            closing,
            state: Mutex::new(State::Down),
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

    /// Whether a lost connection is replaced.
    pub(super) fn comes_back(&self) -> bool {
        !self.closing.is_raised() && !matches!(&*lock(&self.state), State::GaveUp(_))
    }

    pub(super) fn frame_max(&self) -> u32 {
        self.frame_max.load(Ordering::Relaxed)
    }

    async fn keep(self: Arc<Self>, first: Option<Arc<Live>>) {
        let mut next = first;
        let mut failures = 0;
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
            failures = u32::from(since.elapsed() < SHORT_LIVED);
            self.set(State::Down);
        }
    }

    /// Dials under the policy, until it gives up or the backend is closed.
    async fn come_back(&self, mut failures: u32) -> Option<Arc<Live>> {
        let (role, addresses) = (self.role, &self.addresses);
        let mut error = None;
        loop {
            let attempt = Attempt {
                failures,
                error: error.as_ref(),
                rebuilding: Rebuilding::Connection,
            };
            let policy = self.options.reconnect.as_deref();
            let verdict = match (next_delay(policy, &attempt), &error) {
                (Ok(Some(delay)), _) => Ok(delay),
                (Err(panic), _) => Err(panic),
                (Ok(None), Some(error)) => Err(format!(
                    "gave up after {failures} attempts: {}",
                    error.chain()
                )),
                (Ok(None), None) => Err("the connection is lost and is not to come back".into()),
            };
            let delay = match verdict {
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
                    failures = failures.saturating_add(1);
                    error = Some(failed);
                }
            }
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
    }
}

impl Live {
    pub(super) fn new(
        connection: Connection,
        returns: Arc<Returns>,
        socket: Receiver<Infallible>,
    ) -> Self {
        Self {
            connection,
            returns,
            ladders: OnceCell::new(),
            socket,
            over: Latch::new(),
            blocked: Mutex::default(),
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection.status().connected() && !self.is_over()
    }

    /// Whether the end of the connection is known.
    pub(super) fn is_over(&self) -> bool {
        self.socket.is_closed() || self.over.is_raised()
    }

    /// Whether what is written to `channel`, one of this connection's, can still arrive.
    pub(super) fn carries(&self, channel: &Channel) -> bool {
        channel.status().connected() && !self.is_over()
    }

    /// Why the broker takes no publishes at the moment, if it does not.
    pub(super) fn blocked(&self) -> Option<String> {
        let is_blocked = self.connection.status().blocked();
        let reason = || lock(&self.blocked).clone().unwrap_or_default();
        is_blocked.then(reason)
    }

    /// The answer to what lapin asks the broker. lapin itself may never answer when the connection
    /// ends in that moment.
    pub(super) fn ask<'a, T: Send + 'a>(
        &'a self,
        action: &'static str,
        subject: &'a str,
        question: impl Future<Output = lapin::Result<T>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let mut answer = None;
            let answered = Box::pin(async {
                answer = Some(question.await.map_err(broker(action, subject)));
            });
            self.wait_for(action, subject, answered).await?;
            answer.expect("what was waited for is there")
        })
    }

    async fn wait_for(
        &self,
        action: &'static str,
        subject: &str,
        answered: BoxFuture<'_, ()>,
    ) -> Result<()> {
        let answered = async {
            answered.await;
            Ok(())
        };
        let ended = async {
            self.ended().await;
            Err(lost(action, subject, "it ended before the answer"))
        };
        let answer = client().timeout(ANSWER, or(answered, ended)).await;
        answer.unwrap_or_else(|| {
            Err(Error::TimedOut {
                action,
                subject: subject.into(),
                limit: ANSWER,
            })
        })
    }

    /// Resolves when the connection is over.
    pub(super) async fn ended(&self) {
        let released = async {
            let _closed = self.socket.recv().await;
        };
        or(released, self.over.raised()).await;
    }

    /// Reports alarms of the broker until the connection ends; answers why it did.
    async fn watch(&self, role: &str) -> String {
        let mut events = pin!(self.connection.events_listener());
        let told = async {
            while let Some(event) = events.next().await {
                match event {
                    lapin::Event::ConnectionBlocked(reason) => {
                        log::warn!("the broker blocks the {role} connection: {reason}");
                        *lock(&self.blocked) = Some(reason);
                    }
                    lapin::Event::ConnectionUnblocked => {
                        log::info!("the broker takes publishes again");
                        *lock(&self.blocked) = None;
                    }
                    lapin::Event::Error(error) if !self.connection.status().connected() => {
                        return error.to_string();
                    }
                    _ => {}
                }
            }
            future::pending().await
        };
        let ended = async {
            self.ended().await;
            "its socket is closed".into()
        };
        let why = or(told, ended).await;
        self.over.raise();
        why
    }
}

pub(super) fn lost(action: &'static str, subject: &str, why: &str) -> Error {
    Error::Disconnected {
        action,
        subject: subject.into(),
        source: why.into(),
    }
}
