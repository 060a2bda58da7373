//! [`Notify`]: tells systemd that the runner is ready, alive and about to stop.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::{ffi::OsStrExt, net::UnixDatagram},
    process,
    time::Duration,
};

use async_io::Timer;
use async_signal::{Signal, Signals};
use futures_lite::{
    StreamExt,
    future::{self, or},
};
use queuey_rabbitmq::{RabbitMqBackend, WorkerHandle};

use crate::failure::Failure;

/// How often the status is renewed where there is no watchdog.
const STATUS: Duration = Duration::from_secs(60);

/// The socket of systemd, if it started us.
#[derive(Debug)]
pub(super) struct Notify {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notify {
    pub(super) fn from_env() -> Result<Self, Failure> {
        let address = env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty());
        let Some(address) = address else {
            return Ok(Self {
                socket: None,
                watchdog: None,
            });
        };
        let socket = connect(&address).map_err(|error| {
            let address = address.to_string_lossy();
            Failure::Failed(format!("cannot reach NOTIFY_SOCKET {address}: {error}"))
        })?;
        let number = |name| env::var(name).ok().and_then(|text| text.parse().ok());
        let ours = number("WATCHDOG_PID").is_none_or(|pid: u64| pid == u64::from(process::id()));
        let limit = number("WATCHDOG_USEC").filter(|&limit| ours && limit > 0);
        Ok(Self {
            socket: Some(socket),
            watchdog: limit.map(Duration::from_micros),
        })
    }

    /// Tells until it is dropped; answers only if it cannot begin.
    pub(super) async fn tell(
        &self,
        queue: &str,
        backend: &RabbitMqBackend,
        handle: &WorkerHandle,
    ) -> Failure {
        if self.socket.is_none() {
            return future::pending().await;
        }
        // Beside those that stop the worker, which does not tell.
        let mut signals = match Signals::new([Signal::Term, Signal::Int]) {
            Ok(signals) => signals,
            Err(error) => return Failure::Failed(format!("cannot listen for signals: {error}")),
        };
        self.send(&format!("READY=1\nSTATUS=running jobs of {queue}"));
        let pause = self.watchdog.map_or(STATUS, |limit| limit / 2);
        let beat = async {
            loop {
                let alive = backend.is_connected();
                if alive && self.watchdog.is_some() {
                    self.send("WATCHDOG=1");
                }
                Timer::after(pause).await;
                self.send(&status(queue, alive, handle));
            }
        };
        let stop = async {
            signals.next().await;
            self.send("STOPPING=1\nSTATUS=waiting for the programs that run");
            future::pending().await
        };
        or(stop, beat).await
    }

    fn send(&self, text: &str) {
        let sent = self.socket.as_ref().map(|it| it.send(text.as_bytes()));
        if let Some(Err(error)) = sent {
            log::warn!("systemd was not told: {error}");
        }
    }
}

fn status(queue: &str, alive: bool, handle: &WorkerHandle) -> String {
    let counts = handle.counts();
    let broker = if alive { "" } else { ", the broker is away" };
    format!(
        "STATUS=jobs of {queue}: {} done, {} retried, {} deferred, {} dead{broker}",
        counts.succeeded, counts.retried, counts.deferred, counts.dead_lettered
    )
}

fn connect(address: &OsString) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    // The worker does not wait for systemd.
    socket.set_nonblocking(true)?;
    match address.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
            socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        }
        _ => socket.connect(address)?,
    }
    Ok(socket)
}
