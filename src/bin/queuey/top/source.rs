//! [`Source`]: the connection behind the screen, made again when it is lost.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_channel::{Receiver, Sender};
use futures_lite::future::or;
use queuey_rabbitmq::{Chain, admin::Admin};

use super::{Event, snapshot::Snapshot};
use crate::connect::Connect;

/// Pauses between attempts to connect: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

pub(crate) struct Source<'a> {
    connect: &'a Connect,
    queues: &'a [String],
    holds: &'a [Duration],
    interval: Duration,
    events: Sender<Event>,
    admin: Mutex<Option<Admin>>,
    /// Said when a snapshot is wanted before its time, or the connection was found lost.
    wake: (Sender<Wake>, Receiver<Wake>),
}

pub(crate) enum Wake {
    /// Something was changed.
    Look,
    /// Somebody else has noticed that the connection is lost, and why.
    Lost(String),
}

impl<'a> Source<'a> {
    pub(crate) fn new(
        connect: &'a Connect,
        (queues, holds): (&'a [String], &'a [Duration]),
        interval: Duration,
        events: Sender<Event>,
        admin: Admin,
    ) -> Self {
        Self {
            connect,
            queues,
            holds,
            interval,
            events,
            admin: Mutex::new(Some(admin)),
            wake: async_channel::bounded(1),
        }
    }

    /// The connection, if there is one at the moment.
    pub(crate) fn admin(&self) -> Option<Admin> {
        self.kept().clone()
    }

    pub(crate) fn wake(&self, why: Wake) {
        // One is enough: it leads to a look at everything.
        let _ = self.wake.0.try_send(why);
    }

    /// Takes snapshots for ever, one per interval.
    pub(crate) async fn run(&self) {
        loop {
            let why = match self.admin() {
                Some(admin) => self.look(&admin).await,
                None => "it was closed".into(),
            };
            let before = self.kept().take();
            if let Some(admin) = before {
                close(&admin).await;
            }
            self.send(Event::Lost(Instant::now(), why)).await;
            self.come_back().await;
        }
    }

    /// Why there are no more snapshots of this connection.
    async fn look(&self, admin: &Admin) -> String {
        loop {
            match Snapshot::by_amqp(admin, self.queues, self.holds).await {
                Ok(snapshot) => self.send(Event::Snapshot(snapshot)).await,
                Err(error) => return Chain(&error).to_string(),
            }
            let woken = async { self.wake.1.recv().await.ok() };
            let due = async {
                pause(self.interval).await;
                None
            };
            if let Some(Wake::Lost(why)) = or(woken, due).await {
                return why;
            }
        }
    }

    async fn come_back(&self) {
        let (mut pause_for, longest) = PAUSES;
        loop {
            pause(pause_for).await;
            match self.connect.admin().await {
                Ok(admin) => {
                    // Said of the connection before.
                    while self.wake.1.try_recv().is_ok() {}
                    *self.kept() = Some(admin);
                    return;
                }
                Err(failure) => self.send(Event::Lost(Instant::now(), failure.text())).await,
            }
            pause_for = (pause_for * 2).min(longest);
        }
    }

    async fn send(&self, event: Event) {
        let _ = self.events.send(event).await;
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Admin>> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes `admin`, if that takes no time.
pub(crate) async fn close(admin: &Admin) {
    let closed = async { drop(admin.close().await) };
    or(closed, pause(Duration::from_secs(2))).await;
}

pub(crate) async fn pause(duration: Duration) {
    async_io::Timer::after(duration).await;
}
