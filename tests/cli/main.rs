//! The program `queuey`, as a script runs it.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[cfg(unix)]
#[allow(dead_code, reason = "each suite uses its part")]
#[path = "../support/relay.rs"]
mod relay;
#[path = "../support/mod.rs"]
mod support;

mod dead;
mod doctor;
mod enqueue;
mod management;
mod policies;
#[cfg(unix)]
mod progress;
mod quorum;
mod replay;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod run_stop;
#[cfg(target_os = "linux")]
mod runner;
mod status;
#[cfg(target_os = "linux")]
mod systemd;
mod tail;
#[cfg(unix)]
mod terminal;
mod tls;
mod tool;
#[cfg(unix)]
mod top;

use std::process::ExitCode;

use support::{On, broker_trial, ctl_trial, https_trial, management_trial, since, tls_trial};

macro_rules! facts {
    ($trial:ident; $($file:ident: $($fact:ident)+;)+) => {
        vec![$($($trial(
            concat!(stringify!($file), "::", stringify!($fact)).into(),
            On::AsyncGlobalExecutor,
            $file::$fact,
        ),)+)+]
    };
}

fn main() -> ExitCode {
    let mut trials = facts! { broker_trial;
        dead:
            a_list_takes_nothing_away_and_keeps_the_order
            filters_choose_by_type_cause_error_age_and_attempt
            one_job_is_shown_whole
            a_dead_job_tells_its_story
            an_export_holds_every_body
            a_purge_takes_what_matches_alone
            a_purge_without_yes_is_refused
        ;
        enqueue:
            a_job_has_the_options_of_the_command
            a_delayed_job_comes_later
            many_lines_are_enqueued_and_bad_ones_are_told
            a_missing_queue_is_an_exit_status
            a_peek_shows_the_next_and_takes_nothing
            what_is_moved_names_its_new_queue
        ;
        quorum:
            a_broker_without_them_is_told_and_gets_nothing
        ;
        replay:
            a_replayed_job_is_a_first_attempt_without_its_death
            an_attempt_is_kept_when_asked
            how_a_job_failed_outlives_its_replay
            a_dry_run_changes_nothing
            a_rate_and_a_limit_are_kept
            a_body_that_is_no_job_stays
            a_job_of_a_missing_queue_stays_and_is_told
            a_replay_killed_midway_loses_nothing
        ;
        status:
            counts_are_shown
            a_missing_queue_is_named
            a_broker_that_is_away_is_an_exit_status
            a_suffix_comes_from_the_environment
            completions_and_manual_need_no_broker
            a_command_tells_its_own_options_first
        ;
        tail:
            silence_is_explained_and_control_c_ends_it
            a_missing_queue_is_not_watched
        ;
        doctor:
            a_healthy_queue_has_no_finding
            every_foreign_argument_is_told
            another_kind_is_told
            a_queue_that_is_missing_stays_missing
            what_lies_on_a_queue_is_told
            odd_terms_of_the_connection_are_told
        ;
    };
    trials.extend(facts! { ctl_trial;
        doctor:
            a_user_without_rights_hears_which
        ;
    });
    trials.extend(facts! { management_trial;
        management:
            a_status_needs_no_names
            a_healthy_queue_has_no_finding
            a_job_in_hand_for_long_is_told
            a_default_queue_type_is_told
            a_user_who_may_not_ask_is_told
        ;
        policies:
            policies_that_bite_are_told
            what_a_policy_means_depends_on_the_version
            a_foreign_hold_queue_is_told
            a_policy_bounds_the_dead_letters
        ;
    });
    trials.extend(since(
        (4, 0),
        facts! { management_trial;
            policies:
                policies_of_quorum_queues_are_told
            ;
        },
    ));
    trials.extend(since(
        (4, 0),
        facts! { broker_trial;
            quorum:
                a_delayed_job_waits_in_a_quorum_queue
                a_move_loses_nothing_and_keeps_order_and_headers
                a_replay_keeps_the_order
            ;
        },
    ));
    trials.extend(facts! { ctl_trial;
        tail:
            jobs_pass_by_and_stay
            a_type_is_chosen
        ;
    });
    trials.extend(facts! { tls_trial;
        tls:
            amqps_takes_a_private_ca_and_a_certificate
        ;
    });
    trials.extend(facts! { https_trial;
        tls:
            an_api_of_a_private_ca_is_asked
        ;
    });
    #[cfg(unix)]
    trials.extend(facts! { broker_trial;
        progress:
            a_terminal_shows_how_far_long_work_is
            a_pipe_is_not_told
        ;
        top:
            counts_change_as_jobs_come_and_die
            a_dead_job_is_told_and_replayed
            no_terminal_is_too_small
            control_c_and_sigterm_restore_the_terminal
            a_lost_connection_comes_back
            a_silent_broker_does_not_hold_the_screen
            a_replay_without_an_answer_is_not_called_off
            colours_can_be_refused
            a_pipe_is_told_of_status
        ;
    });
    #[cfg(target_os = "linux")]
    trials.extend(facts! { broker_trial;
        run:
            each_end_of_a_program_has_its_outcome
            a_failed_program_is_run_again_after_the_delay
            a_program_gets_the_job
            what_a_program_prints_is_passed_on_and_recorded
            a_program_defers_its_job
            nonsense_on_the_control_file_is_no_success
            a_large_payload_is_read_or_not
            a_daemon_that_holds_the_pipes_holds_up_nobody
            a_timeout_ends_the_whole_group
            never_more_programs_than_agreed
            only_the_types_asked_for_are_run
            a_program_that_does_not_exist_is_told_at_start
        ;
        run_stop:
            a_signal_lets_a_running_program_end
            a_program_is_told_to_end_after_the_grace
            a_program_told_to_end_gives_its_job_back
            a_second_signal_gives_the_job_back
            the_deadline_gives_the_job_back
        ;
        systemd:
            systemd_is_told
            the_watchdog_starves_while_the_broker_is_away
            no_program_is_left_a_zombie
        ;
    });
    let together = support::run("cli", trials);
    // What stops the whole broker has it to itself.
    let alone = facts! { management_trial;
        management:
            an_alarm_is_told
        ;
    };
    let alone = support::run_alone("cli", alone);
    if together == ExitCode::SUCCESS {
        alone
    } else {
        together
    }
}
