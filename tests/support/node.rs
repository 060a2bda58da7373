//! The broker's node as its operator starts and stops it, and what is put right in any case.

use std::process::Command;

use crate::support::Broker;

/// Whether the node is up, for whoever wants it otherwise for a while. Dropped, it is as before.
#[must_use = "dropped, the node is as before"]
pub struct Away(&'static str);

impl Away {
    pub async fn end(self) {
        blocking::unblock(move || drop(self)).await;
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        node(self.0);
    }
}

/// Runs `rabbitmqctl` with these arguments when it is dropped.
#[must_use = "dropped, all is as before"]
pub struct Restore(pub Broker, pub Vec<String>);

impl Restore {
    pub async fn now(self) {
        blocking::unblock(move || drop(self)).await;
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        let arguments: Vec<_> = self.1.iter().map(String::as_str).collect();
        self.0.ctl(&arguments);
    }
}

/// Kills the node as a power failure would.
pub async fn kill() -> Away {
    blocking::unblock(|| node("kill")).await;
    Away("start")
}

/// Stops the processes of the node; its sockets stay open.
pub async fn pause() -> Away {
    blocking::unblock(|| node("pause")).await;
    Away("resume")
}

fn node(verb: &str) {
    let program = std::env::var("RABBITMQ_NODE").expect("run by tests/with-broker");
    let status = Command::new(program).arg(verb).status().unwrap();
    assert!(
        status.success() || std::thread::panicking(),
        "$RABBITMQ_NODE {verb}: {status}"
    );
}

impl Broker {
    /// Like [`ctl`](Self::ctl), for a test that goes on meanwhile.
    pub async fn ctl_beside(&self, arguments: &[&str]) -> String {
        let (broker, arguments) = (self.clone(), arguments.iter().map(|&it| it.to_owned()));
        let arguments: Vec<String> = arguments.collect();
        blocking::unblock(move || {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            broker.ctl(&arguments)
        })
        .await
    }
}
