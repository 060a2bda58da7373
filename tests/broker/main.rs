//! What only RabbitMQ has: topology, confirms, holds, addresses, TLS.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../support/mod.rs"]
mod support;

mod settle;

use std::process::ExitCode;

use support::{On, broker_trial};

macro_rules! facts {
    ($($file:ident: $($fact:ident)+;)+) => {
        vec![$($(broker_trial(
            concat!(stringify!($file), "::", stringify!($fact)).into(),
            On::AsyncGlobalExecutor,
            $file::$fact,
        ),)+)+]
    };
}

fn main() -> ExitCode {
    let trials = facts! {
        settle:
            an_ack_on_a_dead_connection_is_a_failed_settlement
        ;
    };
    support::run("broker", trials)
}
