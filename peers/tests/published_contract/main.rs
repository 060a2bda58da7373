//! What `queuey` 1.1 promises of a backend, on its own and on ours.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../../../tests/support/mod.rs"]
mod support;
#[path = "../support/watched.rs"]
mod watched;

mod app;
mod deliver;
mod hold;
mod peer;
mod settle;
mod stuck;

use std::process::ExitCode;

use peer::{Library, Peer};
use support::{On, broker_trial};

macro_rules! facts {
    ($on:expr, $libraries:expr; $($file:ident: $($fact:ident)+;)+) => {
        $libraries.into_iter().flat_map(|library: Library| [$($(broker_trial(
            format!(concat!("{}::", stringify!($file), "::", stringify!($fact)), library.name()),
            $on,
            move |broker| $file::$fact(Peer { library, broker }),
        ),)+)+]).collect::<Vec<_>>()
    };
}

fn main() -> ExitCode {
    let mut trials = facts! {
        On::Tokio, [Library::Published, Library::Ours];
        app:
            an_application_runs
        ;
        deliver:
            declaring_again_changes_nothing
            a_job_arrives_as_it_was_published
            prefetch_bounds_what_is_in_hand
            a_publish_without_a_queue_fails_and_the_next_one_works
            a_return_belongs_to_the_publish_that_caused_it
            other_arguments_are_refused_and_the_backend_goes_on
            a_malformed_body_is_set_aside
            without_dead_letter_queues_a_malformed_body_is_dropped
            close_ends_the_stream
        ;
        hold:
            a_delay_is_waited_for
            a_short_wait_passes_a_long_one
            equal_waits_share_a_hold_and_keep_their_priorities
            retries_and_deferrals_round_separately
            a_hold_needs_a_declared_queue
            an_idle_hold_queue_goes_away
            a_deferral_passes_the_backlog
            without_priorities_a_deferral_still_returns
            a_wait_beyond_the_limit_is_refused
        ;
        settle:
            a_retry_returns_with_the_next_attempt
            a_deferral_outlives_its_backend
            a_dead_letter_tells_why
            without_a_dead_letter_queue_the_job_stays
            without_dead_letter_queues_the_job_is_rejected
            a_foreign_hold_queue_is_left_alone_and_the_job_stays
            a_refused_retry_leaves_the_job_unsettled
        ;
    };
    trials.extend(facts! {
        On::Tokio, [Library::Ours];
        app:
            a_job_that_runs_at_the_shutdown_is_settled
        ;
    });
    // queuey's worker needs tokio, our backend under its trait does not.
    trials.extend(facts! {
        On::AsyncGlobalExecutor, [Library::Ours];
        stuck:
            what_may_heal_comes_back_after_a_pause
            what_cannot_heal_comes_back_when_the_subscription_ends
            what_only_our_envelope_can_hold_is_set_aside
            a_closed_backend_is_shut_down
        ;
    });
    support::run("published_contract", trials)
}
