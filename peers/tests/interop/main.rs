//! Fleets in which some processes run `queuey` 1.1 and some run us.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../../../tests/support/mod.rs"]
mod support;
#[path = "../support/watched.rs"]
mod watched;

mod golden;
mod jobs;
mod library;
mod topology;
mod travel;

use std::process::ExitCode;

use library::{Library, Ours, Theirs};
use libtest_mimic::Trial;
use support::{Broker, On, broker_trial};

/// Each fact twice: from their process to ours, and from ours to theirs.
macro_rules! both_ways {
    ($file:ident: $($fact:ident)+) => {
        vec![$(
            trial::<Theirs, Ours, _>(stringify!($file), stringify!($fact), $file::$fact::<Theirs, Ours>),
            trial::<Ours, Theirs, _>(stringify!($file), stringify!($fact), $file::$fact::<Ours, Theirs>),
        )+]
    };
}

/// The same with a job type of its own for each way.
macro_rules! jobs_both_ways {
    ($file:ident: $($fact:ident($job:ident))+) => {
        vec![$(
            trial::<Theirs, Ours, _>(
                stringify!($file), stringify!($fact), $file::$fact::<Theirs, Ours, jobs::from_them::$job>,
            ),
            trial::<Ours, Theirs, _>(
                stringify!($file), stringify!($fact), $file::$fact::<Ours, Theirs, jobs::from_us::$job>,
            ),
        )+]
    };
}

fn trial<A: Library, B: Library, F>(file: &str, fact: &str, test: fn(Broker) -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    let name = format!("{file}::{}_then_{}::{fact}", A::NAME, B::NAME);
    broker_trial(name, On::Tokio, test)
}

fn main() -> ExitCode {
    let mut trials = golden::trials();
    trials.extend(jobs_both_ways! {
        travel:
            an_enqueued_job_runs(Enqueued)
            a_retried_job_comes_back(Retried)
            a_deferred_job_passes_the_backlog(Deferred)
            a_dead_letter_runs_again(Dead)
            a_job_that_failed_elsewhere_fails_here(Failed)
            both_publish_the_same_message(Message)
            both_write_the_same_dead_letter(Letter)
    });
    trials.extend(both_ways! {
        topology:
            every_queue_is_declared_alike
            waits_share_one_hold
            another_priority_is_refused
            a_transient_queue_meets_the_same_answer
    });
    support::run("interop", trials)
}
