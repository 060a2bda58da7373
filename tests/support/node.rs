//! The broker's nodes as their operator starts and stops them, and what is put right in any case.

use std::process::Command;

use crate::support::Broker;

/// Whether a node is up, for whoever wants it otherwise for a while. Dropped, it is as before.
#[must_use = "dropped, the node is as before"]
pub struct Away {
    back: &'static str,
    number: usize,
}

impl Away {
    pub async fn end(self) {
        blocking::unblock(move || drop(self)).await;
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        node(self.back, self.number);
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
    kill_number(1).await
}

/// Kills one node of several; the first is 1.
pub async fn kill_number(number: usize) -> Away {
    away(number, "kill", "start").await
}

/// Stops the processes of the node; its sockets stay open.
pub async fn pause() -> Away {
    away(1, "pause", "resume").await
}

async fn away(number: usize, verb: &'static str, back: &'static str) -> Away {
    blocking::unblock(move || node(verb, number)).await;
    Away { back, number }
}

fn node(verb: &str, number: usize) {
    let program = std::env::var("RABBITMQ_NODE").expect("run by tests/with-broker");
    let mut command = Command::new(program);
    let status = command.args([verb, &number.to_string()]).status().unwrap();
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
