//! What only RabbitMQ has: topology, confirms, holds, addresses, TLS.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[allow(dead_code, reason = "each suite uses its part")]
#[path = "../support/relay.rs"]
mod relay;
#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod close;
mod confirm;
mod connect;
mod crashes;
mod dead;
mod dial;
mod failure;
mod hold;
mod kinds;
mod ladder;
mod log;
mod malformed;
mod mismatch;
mod priority;
mod quorum;
mod reconnect;
mod runtime;
mod settle;
mod subscription;
mod tls;
mod topology;
mod verdict;
mod wire;

use std::{process::ExitCode, time::Duration};

use queuey_rabbitmq::RabbitMqOptions;
use support::{On, broker_trial, ctl_trial, tls_trial};

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
        close:
            what_was_acked_before_it_never_comes_back
        ;
        confirm:
            a_job_stays_in_hand_when_its_dead_letter_queue_is_gone
            a_job_in_hand_after_a_failed_dead_letter_can_be_settled
            a_job_stays_in_hand_when_it_would_wait_for_an_unknown_queue
            a_full_queue_refuses_by_name
            a_full_queue_takes_jobs_again_when_there_is_room
        ;
        dead:
            none_is_declared
            a_dead_letter_is_gone
            a_malformed_body_is_gone
        ;
        failure:
            it_goes_from_one_process_to_the_next
            a_dead_letter_that_an_operator_moves_back_keeps_it
            a_megabyte_of_it_fits_the_smallest_frame
            a_foreign_header_in_its_place_is_ignored
        ;
        hold:
            a_delay_rounds_up_to_a_whole_second
            a_hold_queue_goes_by_itself_and_is_made_again
            a_hold_is_declared_before_every_publish_into_it
            holds_asked_for_at_once_share_declares
            a_close_waits_for_a_hold_that_is_not_confirmed_yet
            no_job_is_lost_or_early_on_a_slow_link
            a_hold_confirmed_too_late_is_stored_again
            a_publish_that_found_its_hold_gone_is_repeated
            a_queue_declared_again_gets_later_jobs
        ;
        kinds:
            a_queue_that_is_not_durable_works_or_is_refused_by_name
        ;
        ladder:
            random_delays_are_never_early_and_all_come_back
            jobs_of_a_deleted_queue_end_where_they_are_found
            a_queue_of_wildcards_gets_its_jobs_and_no_others
            a_job_is_not_held_up_by_one_ahead_that_is_due_later
            deferrals_come_back_ahead_of_the_backlog
            it_may_be_declared_by_many_at_once
        ;
        malformed:
            bodies_are_set_aside_byte_for_byte
            bodies_of_many_levels_are_set_aside
            large_bodies_are_set_aside
            headers_of_every_type_do_not_follow_a_malformed_body
            headers_of_every_type_do_not_hinder_a_good_job
            a_malformed_body_keeps_what_was_said_of_it
            a_hundred_malformed_bodies_do_not_stop_the_stream
            an_unknown_key_of_many_levels_is_skipped
            a_payload_of_many_levels_is_dead_lettered_by_a_worker
        ;
        mismatch:
            an_error_names_queue_argument_and_both_values
            refused_declares_disturb_nothing_else
            a_foreign_hold_refuses_every_way_of_waiting
            a_foreign_hold_disturbs_no_hold_declared_beside_it
            a_hold_replaced_by_a_foreign_one_loses_no_job_of_another
            many_who_ask_for_a_foreign_hold_are_each_refused
        ;
        quorum:
            it_needs_rabbitmq_4
            it_is_refused_by_name_when_it_is_not_durable
            it_and_its_dead_letter_queue_have_the_documented_arguments
            a_job_goes_every_way
            a_job_that_ends_every_consumer_is_dead_with_a_reason
            a_job_given_back_at_many_shutdowns_is_still_there
        ;
        priority:
            a_deferral_overtakes_only_what_is_still_queued
            a_priority_above_the_queues_levels_is_the_top_level
            few_jobs_behind_many_of_a_higher_priority_end
        ;
        settle:
            an_ack_on_a_dead_connection_is_a_failed_settlement
            what_exceeds_our_own_limit_can_still_be_dead
            a_broken_link_is_a_connection_lost_to_all
            settling_after_the_loss_never_succeeds
        ;
        subscription:
            a_dropped_stream_gives_back_all_it_has_buffered
            a_dropped_stream_does_not_wait_for_jobs_in_hand
            dropping_one_subscription_does_not_disturb_another
            what_one_subscription_gives_back_another_of_the_queue_gets
            parts_may_be_dropped_in_any_order
            a_stream_and_a_delivery_outlive_the_backend_value
            a_deleted_queue_ends_its_stream_when_nothing_is_to_come_back
            a_deleted_queue_is_made_again_and_its_stream_goes_on
        ;
        topology:
            queues_have_the_documented_arguments_and_no_others
            a_queue_an_operator_made_is_used_when_it_is_alike
            a_queue_of_another_kind_is_refused_by_name
        ;
        verdict:
            only_the_sixth_of_ten_fails_when_its_queue_is_missing
            a_few_of_many_fail_when_their_queues_are_missing
            threads_that_publish_at_once_get_their_own_verdicts
            a_publish_given_up_half_way_disturbs_no_verdict
            a_hold_given_up_half_way_disturbs_no_other
        ;
        wire:
            a_job_has_these_properties_and_this_body
            a_job_without_priority_says_so
            a_waiting_job_has_the_properties_of_any_other
            a_dead_letter_has_these_headers_on_top
            a_long_job_type_is_cut_in_the_properties_alone
            a_correlation_id_of_a_megabyte_travels
            the_longest_name_can_be_published_to_and_consumed
            a_longer_name_is_refused_and_nothing_breaks
            a_body_that_names_a_huge_queue_can_be_settled
            the_longest_dead_letter_fits_the_smallest_frame
        ;
        connect:
            a_wrong_password_is_called_a_refused_login
            an_unknown_user_is_called_a_refused_login
            a_vhost_that_does_not_exist_is_called_not_found
            a_reason_is_said_once
            a_password_is_told_either_way
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
        reconnect:
            a_policy_that_panics_gives_up_the_connection_and_all_hear_why
            a_policy_that_panics_gives_up_the_subscription_alone
            a_policy_against_every_attempt_is_not_against_the_first
        ;
        addresses:
            the_next_is_tried_when_one_does_not_answer
            a_lost_connection_comes_back_at_another_with_its_queues
            shuffled_dials_spread_over_all
        ;
        dial:
            a_port_nobody_listens_on_is_refused
            a_host_that_does_not_exist_is_named
            a_silent_server_is_given_up_in_time_and_left
            a_silent_tls_server_is_given_up_in_time_and_left
            a_dropped_dial_leaves_the_server
            a_server_that_hangs_up_is_said_to_have
            a_link_that_breaks_in_the_handshake_is_no_reason_to_wait
            a_web_server_is_not_taken_for_a_broker
            a_server_of_another_amqp_says_so
        ;
    };
    trials.extend(facts! { ctl_trial;
        confirm:
            a_job_stays_in_hand_when_its_dead_letter_queue_is_full
        ;
        connect:
            a_user_without_the_vhost_is_told_which
            a_user_without_permissions_is_told_what_is_refused_on_which_queue
            silence_is_noticed_within_a_minute_unless_asked_otherwise
            special_characters_work_in_a_uri_and_in_the_builder
        ;
        crashes:
            what_is_given_back_counts_where_a_broker_cannot_tell
            a_lost_connection_is_no_crash_to_whoever_lost_it
        ;
        dead:
            what_is_rejected_follows_the_operators_policy
        ;
        hold:
            a_waiting_job_is_not_unacknowledged
        ;
        ladder:
            a_level_that_was_deleted_is_made_again
            its_making_is_repeated_when_it_is_cut_off
        ;
        log:
            no_record_and_no_debug_text_shows_a_password
        ;
        settle:
            a_connection_closed_by_the_operator_is_lost_to_all
        ;
        subscription:
            the_broker_knows_the_prefetch_of_each_queue
            nothing_is_left_of_a_dropped_backend
        ;
        topology:
            an_operator_sees_the_documented_arguments
            a_job_goes_every_way_where_a_queue_is_quorum_by_default
            a_hundred_deferrals_return_where_a_queue_is_quorum_by_default
        ;
    });
    trials.extend(facts! { tls_trial;
        tls:
            a_job_goes_over_tls_with_a_pem_certificate
            a_job_goes_over_tls_with_a_pkcs12_certificate
            a_certificate_logs_in_as_its_common_name
            a_server_of_an_unknown_ca_is_refused
            a_client_without_a_certificate_is_refused
            a_certificate_of_another_host_is_refused
            an_expired_certificate_is_said_to_be
            a_wrong_archive_password_is_refused_and_not_shown
            a_tls_port_spoken_to_in_plain_text_is_an_error
            a_plain_port_spoken_to_with_tls_is_an_error
            an_empty_trust_store_is_an_error
        ;
    });
    support::run("broker", trials)
}
