//! The broker, the link and the worker end in every way there is, and no job is lost.
//!
//! One test at a time: most of them take the broker away from whoever uses it. With `QUEUEY_LONG=1`
//! they go on for longer.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../support/lines.rs"]
mod lines;
#[path = "../support/node.rs"]
mod node;
#[path = "../support/nodes.rs"]
mod nodes;
#[allow(dead_code, reason = "each suite uses its part")]
#[path = "../support/relay.rs"]
mod relay;
#[path = "../support/mod.rs"]
mod support;

mod alarms;
mod channel;
mod cluster;
mod crash;
mod crash_loop;
mod cut;
mod deleted;
mod down;
mod health;
mod killed;
mod load;
mod long;
mod oversize;
mod paused;
mod process;
mod rights;
mod sigterm;
mod silent;
mod slow;
mod timers;
mod unpublished;

use std::{process::ExitCode, time::Duration};

use queuey_rabbitmq::{Backoff, BackoffPolicy, RabbitMqBackend, RabbitMqOptions};
use relay::Relay;
use support::{Broker, On, broker_trial, cluster_trial, ctl_trial, node_trial, since};

macro_rules! facts {
    ($($trial:ident $file:ident: $($fact:ident)+;)+) => {
        vec![$($($trial(
            concat!(stringify!($file), "::", stringify!($fact)).into(),
            On::AsyncGlobalExecutor,
            $file::$fact,
        ),)+)+]
    };
}

/// Options under which a lost connection is tried again four times a second.
fn quick() -> RabbitMqOptions {
    let policy = BackoffPolicy::new().backoff(Backoff::Fixed(Duration::from_millis(250)));
    RabbitMqOptions::new().reconnect_with(policy)
}

/// A backend that reaches the broker through `relay`.
async fn through(broker: &Broker, relay: &Relay, options: RabbitMqOptions) -> RabbitMqBackend {
    let options = options.runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&relay.url, options).await;
    backend.expect("the broker lets us in")
}

/// `url` with a heartbeat every so often.
fn heartbeat(url: &str, every: Duration) -> String {
    format!("{url}?heartbeat={}", every.as_secs())
}

fn main() -> ExitCode {
    if let Some(child) = crash::child()
        .or_else(crash_loop::child)
        .or_else(sigterm::child)
    {
        return child;
    }
    let mut trials = facts! {
        broker_trial cut:
            jobs_all_run_while_the_link_breaks_five_times_a_second
            what_is_enqueued_while_nobody_listens_is_stored_once_somebody_does
            a_worker_that_starts_while_the_link_breaks_works
        ;
        ctl_trial cut:
            a_thousand_jobs_run_a_thousand_times_however_often_the_link_breaks
            what_has_not_started_is_left_to_whoever_gets_it_next
            the_prefetch_is_as_before_and_nothing_piles_up_over_twenty_cuts
        ;
        node_trial killed:
            jobs_enqueued_around_its_end_all_run
            jobs_that_ran_at_its_end_run_again
            jobs_that_waited_for_another_attempt_get_it
            jobs_whose_wait_ended_while_it_was_away_run_afterwards
            a_worker_outlives_one_restart_after_another
        ;
        broker_trial silent:
            a_half_open_link_is_noticed_and_made_again
            a_confirm_that_never_comes_is_a_timeout_and_the_next_enqueue_works
            many_confirms_that_never_come_do_not_hold_up_the_next_enqueue
        ;
        ctl_trial alarms:
            an_alarm_for_memory_stops_publishes_and_nothing_else
            an_alarm_for_disk_stops_publishes_and_nothing_else
        ;
        ctl_trial unpublished:
            retries_wait_for_the_end_of_an_alarm_and_other_jobs_go_on
            a_shutdown_gives_back_what_waits_for_its_retry
            what_a_worker_gave_back_runs_under_an_alarm
        ;
        broker_trial sigterm:
            short_jobs_end_and_long_ones_are_back_before_the_kill
        ;
        broker_trial timers:
            a_job_timeout_ends_a_job_across_three_reconnects
            a_shutdown_ends_at_its_deadline_across_three_cuts
        ;
        broker_trial health:
            a_worker_is_unhealthy_for_as_long_as_the_broker_is_away
        ;
        broker_trial deleted:
            a_worker_goes_on_when_its_queue_was_deleted
            a_worker_whose_queue_was_replaced_by_another_kind_ends_and_says_so
        ;
        ctl_trial oversize:
            a_body_too_large_for_the_broker_fails_alone
        ;
        broker_trial slow:
            jobs_and_retries_are_neither_lost_nor_early_on_a_slow_link
        ;
        node_trial down:
            publishes_end_in_time_and_workers_stop_as_asked
            a_bounded_policy_gives_up_and_all_hear_of_it_at_once
            a_backend_told_to_wait_connects_once_the_broker_is_there
            a_lost_connection_is_no_failed_attempt_to_subscribe
            a_worker_ends_when_its_connection_is_given_up
            calls_that_time_out_leave_nothing_behind
        ;
        ctl_trial channel:
            jobs_all_run_while_their_channels_are_closed
            jobs_in_hand_of_a_closed_channel_run_once
        ;
        ctl_trial long:
            a_long_job_of_a_classic_queue_runs_once
            a_queue_that_asks_for_more_time_gets_it_or_says_who_must
            a_job_timeout_beyond_it_is_told_at_the_start
        ;
        ctl_trial crash:
            jobs_of_a_killed_process_run_elsewhere_and_none_is_missing
        ;
        ctl_trial crash_loop:
            a_job_that_ends_its_process_is_given_up_and_the_others_run
        ;
        ctl_trial rights:
            a_producer_without_rights_hears_so_at_once_and_works_when_it_has_them
            a_password_that_is_wrong_for_a_while_ends_nothing_and_is_told_as_an_error
            a_worker_that_may_not_read_is_unhealthy_until_it_may
        ;
        node_trial paused:
            a_broker_that_hangs_holds_nobody_for_longer_than_agreed
            nothing_is_left_of_what_was_closed_while_the_broker_hangs
        ;
        cluster_trial cluster:
            jobs_enqueued_while_each_node_dies_in_turn_all_run
            jobs_that_wait_come_back_when_the_node_of_the_client_dies
            jobs_that_wait_come_back_when_the_leader_of_their_ladder_dies
            jobs_given_up_around_the_death_of_a_node_are_all_dead_letters
            a_worker_whose_node_is_away_goes_on_by_way_of_another
            a_classic_queue_whose_node_is_away_is_worked_on_once_it_is_back
        ;
    };
    let quorum = facts! {
        ctl_trial crash_loop:
            the_same_on_a_quorum_queue
        ;
        ctl_trial long:
            a_long_job_of_a_quorum_queue_runs_once
            only_the_last_consumer_is_left_while_a_long_job_goes_on
        ;
    };
    let consumer_timeout = facts! {
        ctl_trial long:
            a_queue_that_asks_for_less_time_gets_less
        ;
    };
    trials.extend(since((4, 0), quorum));
    trials.extend(since((4, 3), consumer_timeout));
    support::run_alone("chaos", trials)
}
