//! What only RabbitMQ has: topology, confirms, holds, addresses, TLS.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../support/mod.rs"]
mod support;

mod hold;
mod mismatch;
mod relay;
mod settle;
mod topology;

use std::{process::ExitCode, time::Duration};

use queuey_rabbitmq::RabbitMqOptions;
use support::{On, broker_trial, ctl_trial};

macro_rules! facts {
    ($trial:ident; $($file:ident: $($fact:ident)+;)+) => {
        vec![$($($trial(
            concat!(stringify!($file), "::", stringify!($fact)).into(),
            On::AsyncGlobalExecutor,
            $file::$fact,
        ),)+)+]
    };
}

/// Options with hold queues of this granularity.
fn options(granularity: Duration) -> RabbitMqOptions {
    RabbitMqOptions::new()
        .retry_granularity(granularity)
        .deferred_granularity(granularity)
}

fn main() -> ExitCode {
    let mut trials = facts! { broker_trial;
        hold:
            a_delay_rounds_up_to_a_whole_second
            a_hold_queue_goes_by_itself_and_is_made_again
            a_hold_is_declared_before_every_publish_into_it
            holds_asked_for_at_once_share_declares
            no_job_is_lost_or_early_on_a_slow_link
            a_hold_confirmed_too_late_is_stored_again
            a_publish_that_found_its_hold_gone_is_repeated
            a_queue_declared_again_gets_later_jobs
        ;
        mismatch:
            an_error_names_queue_argument_and_both_values
            refused_declares_disturb_nothing_else
            a_foreign_hold_refuses_every_way_of_waiting
            a_foreign_hold_disturbs_no_hold_declared_beside_it
            many_who_ask_for_a_foreign_hold_are_each_refused
        ;
        settle:
            an_ack_on_a_dead_connection_is_a_failed_settlement
        ;
        topology:
            queues_have_the_documented_arguments_and_no_others
            a_queue_an_operator_made_is_used_when_it_is_alike
            a_queue_of_another_kind_is_refused_by_name
        ;
    };
    trials.extend(facts! { ctl_trial;
        hold:
            a_waiting_job_is_not_unacknowledged
        ;
        topology:
            an_operator_sees_the_documented_arguments
            a_job_goes_every_way_where_a_queue_is_quorum_by_default
            a_hundred_deferrals_return_where_a_queue_is_quorum_by_default
        ;
    });
    support::run("broker", trials)
}
