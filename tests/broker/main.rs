//! What only RabbitMQ has: topology, confirms, holds, addresses, TLS.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../support/mod.rs"]
mod support;

mod connect;
mod dial;
mod log;
mod runtime;
mod settle;
mod tls;

use std::process::ExitCode;

use libtest_mimic::Trial;
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

/// Ignores `trials` where the variable `name` is missing, and says so beside their names.
fn needing(name: &str, trials: Vec<Trial>) -> Vec<Trial> {
    if std::env::var_os(name).is_some() {
        return trials;
    }
    trials
        .into_iter()
        .map(|trial| {
            trial
                .with_kind(format!("needs {name}"))
                .with_ignored_flag(true)
        })
        .collect()
}

fn main() -> ExitCode {
    let trials = facts! {
        settle:
            an_ack_on_a_dead_connection_is_a_failed_settlement
        ;
    };
    let mut trials = trials;
    trials.extend(facts! {
        connect:
            a_wrong_password_is_called_a_refused_login
            an_unknown_user_is_called_a_refused_login
            a_vhost_that_does_not_exist_is_called_not_found
            a_reason_is_said_once
            an_ipv6_address_is_never_taken_for_localhost
        ;
        runtime:
            a_handler_may_block_the_only_thread_of_smol
            a_handler_may_block_a_tokio_of_one_thread
            a_backend_lives_on_between_two_short_runs_of_an_executor
            a_handler_may_block_on_a_publish
            a_backend_outlives_the_tokio_it_was_made_on
            handlers_run_on_tokio_for_a_smol_application
            handles_may_be_dropped_in_any_order
            a_worker_may_be_built_here_and_run_there
        ;
        log:
            what_lapin_reports_reaches_the_log
        ;
        dial:
            a_port_nobody_listens_on_is_refused
            a_host_that_does_not_exist_is_named
            a_silent_server_is_given_up_in_time_and_left
            a_silent_tls_server_is_given_up_in_time_and_left
            a_dropped_dial_leaves_the_server
            a_server_that_hangs_up_is_said_to_have
            a_web_server_is_not_taken_for_a_broker
            a_server_of_another_amqp_says_so
        ;
    });
    trials.extend(needing(
        "RABBITMQCTL",
        facts! {
            connect:
                a_user_without_the_vhost_is_told_which
                a_user_without_permissions_is_told_what_is_refused_on_which_queue
                special_characters_work_in_a_uri_and_in_the_builder
        ;
        log:
            no_record_and_no_debug_text_shows_a_password
            ;
        },
    ));
    trials.extend(needing(
        "AMQPS_URL",
        facts! {
            tls:
                a_job_goes_over_tls_with_a_pem_certificate
                a_job_goes_over_tls_with_a_pkcs12_certificate
                a_certificate_logs_in_as_its_common_name
                a_server_of_an_unknown_ca_is_refused
                a_client_without_a_certificate_is_refused
                a_certificate_of_another_host_is_refused
                a_wrong_archive_password_is_refused_and_not_shown
                a_tls_port_spoken_to_in_plain_text_is_an_error
                a_plain_port_spoken_to_with_tls_is_an_error
                an_empty_trust_store_is_an_error
            ;
        },
    ));
    support::run("broker", trials)
}
