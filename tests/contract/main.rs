//! The contract of a backend: each promise once, on every backend, under every runtime.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../support/mod.rs"]
mod support;

mod close;
mod crash;
mod dead_letter;
mod declare;
mod defer;
mod delay;
mod deliver;
mod failure;
mod harness;
mod retry;
mod settle;
mod worker;

use std::process::ExitCode;

use harness::{MemoryHarness, RabbitMqHarness};
use libtest_mimic::Trial;
use support::{On, broker_trial, run};

macro_rules! promises {
    ($($file:ident: $($promise:ident)+;)+) => {
        /// The promises on both backends, under one runtime.
        fn trials(on: On) -> Vec<Trial> {
            vec![$($(
                Trial::test(
                    name("memory", on, concat!(stringify!($file), "::", stringify!($promise))),
                    move || {
                        on.block_on($file::$promise(MemoryHarness::new(on)));
                        Ok(())
                    },
                ),
                broker_trial(
                    name("rabbitmq", on, concat!(stringify!($file), "::", stringify!($promise))),
                    on,
                    async |broker| $file::$promise(RabbitMqHarness::new(broker).await).await,
                ),
            )+)+]
        }
    };
}

fn name(backend: &str, on: On, promise: &str) -> String {
    format!("{backend}::{}::{promise}", on.name())
}

promises! {
    deliver:
        a_job_arrives_as_it_was_enqueued
        jobs_arrive_in_order
        prefetch_bounds_what_is_in_hand
        two_consumers_share_a_queue
        a_queue_holds_only_its_own_jobs
    ;
    delay:
        a_delayed_job_is_never_early
        a_zero_delay_passes
        a_short_delay_is_not_stuck_behind_a_long_one
        a_delayed_job_goes_to_the_back
        a_delay_on_an_undeclared_queue_is_refused
        a_delay_beyond_the_limit_is_refused
    ;
    retry:
        a_retry_carries_the_next_attempt
        a_retry_is_never_early
        a_retry_returns_to_the_back
        a_refused_retry_keeps_the_job_in_hand
    ;
    defer:
        a_deferral_keeps_the_attempt
        a_deferral_is_never_early
        a_deferral_overtakes_the_backlog
        deferrals_of_one_delay_keep_their_order_without_priorities
        a_retry_and_a_deferral_return_at_their_own_priorities
        a_refused_deferral_keeps_the_job_in_hand
    ;
    dead_letter:
        a_dead_letter_keeps_body_and_reason
        a_huge_reason_still_dead_letters
        a_malformed_body_is_set_aside
    ;
    failure:
        a_retry_carries_its_failure
        a_dead_letter_carries_its_failure
        a_job_that_is_published_again_keeps_its_failure
    ;
    settle:
        an_acked_job_is_gone
        a_dropped_delivery_comes_back
        a_released_delivery_comes_back
        a_dropped_stream_gives_back_what_it_did_not_hand_out
        a_delivery_outlives_its_stream
        what_comes_back_keeps_its_place
    ;
    declare:
        declaring_twice_changes_nothing
        another_argument_is_refused_and_the_backend_stays_usable
        a_name_that_would_not_fit_is_refused_before_anything_is_created
        publishing_to_a_missing_queue_is_an_error
        consuming_a_missing_queue_is_an_error
    ;
    close:
        closing_ends_the_streams
        a_closed_backend_refuses_everything
    ;
    worker:
        a_job_runs_end_to_end
        a_failing_job_is_retried_then_dead_lettered
        a_deferred_job_runs_again_in_the_same_attempt
        a_panic_is_told_in_the_dead_letter
        a_dead_letter_tells_its_attempts
        a_timeout_is_a_failed_attempt
        concurrency_is_never_exceeded
        a_busy_queue_runs_beside_idle_ones
        a_shutdown_gives_back_what_has_not_started
        a_handler_that_is_told_to_end_is_settled
        a_handler_that_goes_on_is_dropped_and_its_job_runs_elsewhere
        a_refused_retry_is_dead_lettered
        a_job_without_handler_is_dead_lettered
    ;
    crash:
        a_job_that_nobody_answers_for_is_given_up_as_a_crash_loop
        an_attempt_that_ends_is_no_crash
        without_a_limit_a_job_comes_back_for_ever
    ;
}

fn main() -> ExitCode {
    run("contract", On::ALL.into_iter().flat_map(trials).collect())
}
