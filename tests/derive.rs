//! The derives through the public API.

use std::time::Duration;

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
#[allow(non_camel_case_types)]
enum Plain {
    Emails,
    HTTPCalls,
    #[queue]
    Already_Snake,
    r#raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
#[queues(prefix = "shop.eu")]
enum Prefixed {
    ImageResize,
    #[queue(name = "Custom name")]
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
#[queues]
enum Tuned {
    #[queue(
        name = "all",
        prefetch = 65_535,
        durable = false,
        message_ttl = "4294967295ms",
        max_priority = 255,
        kind = "classic",
        consumer_timeout = "2h",
        retry(max_attempts = 5)
    )]
    All,
    #[queue(max_priority = 0)]
    NoPriorities,
    #[queue(kind = "quorum", max_priority = 31, durable = true)]
    Replicated,
    #[queue(prefetch = 1)]
    #[queue(message_ttl = "1ms")]
    TwoAttributes,
}

mod queues {
    use super::*;

    #[test]
    fn all_lists_the_variants_in_order() {
        let [emails, calls, snake, raw] = Plain::all() else {
            panic!("not four: {:?}", Plain::all());
        };

        assert_eq!((*emails, *calls), (Plain::Emails, Plain::HTTPCalls));
        assert_eq!((*snake, *raw), (Plain::Already_Snake, Plain::r#raw));
    }

    #[test]
    fn a_name_is_the_variant_in_snake_case() {
        let names: Vec<_> = Plain::all().iter().map(QueueSet::name).collect();

        assert_eq!(names, ["emails", "http_calls", "already_snake", "raw"]);
    }

    #[test]
    fn a_prefix_stands_before_every_name() {
        assert_eq!(Prefixed::ImageResize.name(), "shop.eu.image_resize");
        assert_eq!(Prefixed::Named.name(), "shop.eu.Custom name");
    }

    #[test]
    fn from_name_undoes_name() {
        for queue in Prefixed::all() {
            assert_eq!(Prefixed::from_name(queue.name()), Some(*queue));
        }
        assert_eq!(Prefixed::from_name("image_resize"), None);
    }

    #[test]
    fn a_bare_variant_has_the_default_config() {
        assert_eq!(Plain::Emails.config(), QueueConfig::new("emails"));
    }

    #[test]
    fn a_config_carries_the_prefixed_name() {
        assert_eq!(Prefixed::Named.config().name, Prefixed::Named.name());
    }

    #[test]
    fn every_key_reaches_the_config() {
        assert_eq!(
            Tuned::All.config(),
            QueueConfig::new("all")
                .prefetch(65_535)
                .durable(false)
                .message_ttl(Duration::from_millis(4_294_967_295))
                .max_priority(255)
                .kind(QueueKind::Classic)
                .consumer_timeout(Duration::from_secs(7200))
                .retry(RetryPolicy::exponential(5))
        );
    }

    #[test]
    fn zero_turns_priorities_off() {
        assert_eq!(Tuned::NoPriorities.config().max_priority, None);
    }

    #[test]
    fn a_queue_can_be_a_quorum_queue() {
        let config = Tuned::Replicated.config();

        assert_eq!(config.kind, QueueKind::Quorum);
        assert_eq!(config.max_priority, Some(31));
    }

    #[test]
    fn attributes_of_one_variant_add_up() {
        let config = Tuned::TwoAttributes.config();

        assert_eq!(config.prefetch, 1);
        assert_eq!(config.message_ttl, Some(Duration::from_millis(1)));
    }
}

mod jobs {
    use super::*;

    #[derive(Serialize, Deserialize, Job)]
    #[job(queue = Plain::Emails)]
    struct Bare;

    #[derive(Serialize, Deserialize, Job)]
    #[job(
        queue = self::super::Plain::HTTPCalls,
        name = "call",
        aliases = ["call.v1", "old"],
        retry(),
    )]
    struct Full {
        url: String,
    }

    // A variant called like the associated type must not stand in for it.
    #[derive(Serialize, Deserialize, Job)]
    #[job(queue = Prefixed::Named)]
    enum Choice {
        Queue,
        Other(u8),
    }

    macro_rules! job {
        ($job:ident, $queue:path, $name:literal) => {
            #[derive(Serialize, Deserialize, Job)]
            #[job(queue = $queue, name = $name)]
            struct $job;
        };
    }
    job!(FromMacro, Plain::Emails, "from macro");

    #[test]
    fn a_job_names_its_queue() {
        assert_eq!(Bare::QUEUE, Plain::Emails);
        assert_eq!(Full::QUEUE, Plain::HTTPCalls);
    }

    #[test]
    fn the_default_name_is_module_and_type() {
        assert_eq!(Bare::NAME, "derive::jobs::Bare");
    }

    #[test]
    fn there_are_no_aliases_by_default() {
        assert!(Bare::ALIASES.is_empty());
    }

    #[test]
    fn the_policy_is_the_one_of_the_queue_by_default() {
        assert_eq!(Bare::retry_policy(), None);
    }

    #[test]
    fn a_name_is_taken_as_written() {
        assert_eq!(Full::NAME, "call");
    }

    #[test]
    fn aliases_keep_their_order() {
        assert_eq!(Full::ALIASES, ["call.v1", "old"]);
    }

    #[test]
    fn an_enum_is_a_job_too() {
        assert_eq!(Choice::NAME, "derive::jobs::Choice");
        assert_eq!(Choice::QUEUE, Prefixed::Named);
    }

    #[test]
    fn a_macro_may_fill_in_the_keys() {
        assert_eq!(FromMacro::QUEUE, Plain::Emails);
        assert_eq!(FromMacro::NAME, "from macro");
    }
}

mod retries {
    use super::*;

    /// The policy of a queue and of a job that both say `retry(...)`.
    macro_rules! both {
        ($($retry:tt)*) => {{
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
            enum Queue {
                #[queue(retry($($retry)*))]
                Only,
            }

            #[derive(Serialize, Deserialize, Job)]
            #[job(queue = Queue::Only, retry($($retry)*))]
            struct Welcome;

            let policy = Queue::Only.config().retry;
            assert_eq!(Welcome::retry_policy(), Some(policy));
            policy
        }};
    }

    #[test]
    fn three_exponential_attempts_are_the_default() {
        assert_eq!(both!(), RetryPolicy::exponential(3));
    }

    #[test]
    fn the_attempts_can_be_any_u32_but_zero() {
        assert_eq!(both!(max_attempts = 1).max_attempts, 1);
        assert_eq!(both!(max_attempts = 4_294_967_295).max_attempts, u32::MAX);
    }

    #[test]
    fn a_backoff_can_be_none() {
        let policy = both!(backoff = "none");

        assert_eq!(policy, RetryPolicy::new(3, Backoff::None));
    }

    #[test]
    fn a_fixed_backoff_has_its_delay() {
        let policy = both!(delay = "90", backoff = "fixed");

        assert_eq!(policy, RetryPolicy::fixed(3, Duration::from_secs(90)));
    }

    #[test]
    fn every_number_of_an_exponential_backoff_can_be_set() {
        let policy = both!(
            max_attempts = 7,
            backoff = "exponential",
            base = "1500 ms",
            factor = 3.14,
            max = "1d",
            jitter = false,
        );

        let (base, max) = (Duration::from_millis(1500), Duration::from_secs(86_400));
        let factor = "3.14".parse().unwrap();
        let backoff = Backoff::exponential_with(base, factor, max, false);
        assert_eq!(policy, RetryPolicy::new(7, backoff));
    }

    #[test]
    fn a_factor_may_be_an_integer() {
        let (base, max) = (Duration::from_secs(1), Duration::from_secs(300));

        assert_eq!(
            both!(factor = 3).backoff,
            Backoff::exponential_with(base, 3.0, max, true)
        );
    }

    #[test]
    fn the_base_may_equal_the_maximum() {
        let second = Duration::from_secs(1);

        assert_eq!(
            both!(max = "1s").backoff,
            Backoff::exponential_with(second, 2.0, second, true)
        );
    }
}

/// Compiles although every name the generated code could mean is taken.
mod hygiene {
    #![allow(dead_code, non_camel_case_types, unused_macros)]

    use ::queuey_rabbitmq as vendored;

    struct Option;
    struct Some;
    struct None;
    struct String;
    struct Vec;
    struct Duration;
    struct QueueSet;
    struct QueueConfig;
    struct RetryPolicy;
    struct Backoff;
    struct str;
    mod core {}
    mod std {}
    mod queuey_rabbitmq {}
    macro_rules! concat {
        () => {};
    }
    macro_rules! module_path {
        () => {};
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ::queuey_rabbitmq::Queues)]
    #[queues(crate = "self::vendored")]
    enum Queue {
        #[queue(
            prefetch = 1,
            durable = true,
            message_ttl = "1s",
            max_priority = 1,
            kind = "classic",
            retry(backoff = "fixed", delay = "1s")
        )]
        all,
        #[queue(retry(factor = 2.718281828))]
        name,
        #[deprecated]
        config,
    }

    mod job {
        struct Option;
        struct Some;
        struct RetryPolicy;
        struct str;
        mod core {}

        #[derive(::serde::Serialize, ::serde::Deserialize, ::queuey_rabbitmq::Job)]
        #[job(queue = super::Queue::all, aliases = ["old"], retry(), crate = "super::vendored")]
        pub(super) struct Welcome;
    }

    #[test]
    fn shadowed_names_change_nothing() {
        use ::queuey_rabbitmq::{Job, QueueSet};

        ::std::assert_eq!(job::Welcome::NAME, "derive::hygiene::job::Welcome");
        ::std::assert_eq!(Queue::all.config().prefetch, 1);
    }
}
