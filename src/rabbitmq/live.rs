//! [`Live`]: a connection, while it lasts.

use std::{
    convert::Infallible,
    future::{self, Future},
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_channel::Receiver;
use async_lock::{OnceCell, RwLock};
use event_listener::Event;
use futures_lite::{StreamExt, future::or};
use futures_util::future::BoxFuture;
use lapin::Connection;

use super::{
    connection::FAREWELL,
    error::{broker, lost},
    lock,
};
use crate::{
    Error, Result,
    latch::Latch,
    runtime::{Returns, client},
};

/// How long the broker may take for what is answered at once.
const ANSWER: Duration = Duration::from_secs(30);

/// A connection, while it lasts.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) connection: Connection,
    pub(super) returns: Arc<Returns>,
    /// Declared on this connection.
    pub(super) ladders: OnceCell<()>,
    /// Read by what closes a channel, written by what closes the connection.
    pub(super) channels_ending: RwLock<()>,
    /// Closed when lapin lets go of the socket.
    socket: Receiver<Infallible>,
    /// lapin has said so, whatever becomes of the socket.
    over: Latch,
    /// Raised, it shuts the socket down.
    cut: Latch,
    blocked: Mutex<Option<String>>,
    unblocked: Event,
}

impl Live {
    pub(super) fn new(
        connection: Connection,
        returns: Arc<Returns>,
        socket: Receiver<Infallible>,
        cut: Latch,
    ) -> Self {
        Self {
            connection,
            returns,
            ladders: OnceCell::new(),
            channels_ending: RwLock::new(()),
            socket,
            over: Latch::new(),
            cut,
            blocked: Mutex::default(),
            unblocked: Event::new(),
        }
    }

    /// Ends the connection without a farewell.
    pub(super) fn cut(&self) {
        self.cut.raise();
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection.status().connected() && !self.is_over()
    }

    /// Whether the end of the connection is known.
    pub(super) fn is_over(&self) -> bool {
        self.socket.is_closed() || self.over.is_raised()
    }

    /// Why the broker takes no publishes at the moment, if it does not.
    pub(super) fn blocked(&self) -> Option<String> {
        let is_blocked = self.connection.status().blocked();
        let reason = || lock(&self.blocked).clone().unwrap_or_default();
        is_blocked.then(reason)
    }

    /// Resolves when the broker takes publishes, or the connection is over.
    pub(super) async fn takes_publishes(&self) {
        loop {
            let unblocked = self.unblocked.listen();
            if !self.connection.status().blocked() || self.is_over() {
                return;
            }
            or(unblocked, self.ended()).await;
        }
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
        answer.unwrap_or_else(|| Err(self.no_answer(action, subject, ANSWER)))
    }

    /// Why nobody answered for so long.
    pub(super) fn no_answer(&self, action: &'static str, subject: &str, limit: Duration) -> Error {
        match self.blocked() {
            Some(reason) => Error::Blocked {
                action,
                queue: subject.into(),
                limit,
                reason,
            },
            None => Error::TimedOut {
                action,
                subject: subject.into(),
                limit,
            },
        }
    }

    /// Resolves when the connection was seen to be over by whoever keeps it.
    pub(super) async fn over(&self) {
        self.over.raised().await;
    }

    /// Resolves when the connection is over.
    pub(super) async fn ended(&self) {
        let released = async {
            let _closed = self.socket.recv().await;
        };
        or(released, self.over.raised()).await;
    }

    /// Reports alarms of the broker until the connection ends; answers why it did.
    pub(super) async fn watch(&self, role: &str) -> String {
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
                        self.unblocked.notify(usize::MAX);
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

impl Drop for Live {
    /// lapin says farewell by itself, and would wait for the answer for ever.
    fn drop(&mut self) {
        let (socket, cut) = (self.socket.clone(), self.cut.clone());
        if !socket.is_closed() {
            client().run(async move {
                if client().timeout(FAREWELL, socket.recv()).await.is_none() {
                    cut.raise();
                }
            });
        }
    }
}
