use lapin::types::AMQPValue;
use proptest::prelude::*;

use super::*;

/// Whether a topic exchange takes `key` through `binding`.
fn matches(binding: &[&str], key: &[&str]) -> bool {
    match (binding, key) {
        ([], []) => true,
        (["#", binding @ ..], _) => (0..=key.len()).any(|skip| matches(binding, &key[skip..])),
        ([word, binding @ ..], [first, key @ ..]) => {
            (word == first || *word == "*") && matches(binding, key)
        }
        _ => false,
    }
}

fn takes(binding: &str, key: &str) -> bool {
    let words = |text: &'static str| text.split('.').collect::<Vec<_>>();
    let (binding, key) = (binding.to_owned().leak(), key.to_owned().leak());
    matches(&words(binding), &words(key))
}

/// How many milliseconds a job stops, all levels together.
fn walk(ladder: Ladder, seconds: u32, key: &str) -> i64 {
    let levels: Vec<_> = ladder.levels().collect();
    let mut exchange = ladder.exchange(seconds);
    let mut waited = 0;
    while exchange != DUE {
        let level = levels.iter().find(|it| it.exchange == exchange).unwrap();
        assert_ne!(takes(&level.stops, key), takes(&level.passes, key));
        let arguments = level.queue.arguments.inner();
        if takes(&level.stops, key) {
            let AMQPValue::LongLongInt(ttl) = arguments["x-message-ttl"] else {
                panic!("{arguments:?}");
            };
            waited += ttl;
        }
        let next = AMQPValue::LongString(level.next.as_str().into());
        assert_eq!(arguments["x-dead-letter-exchange"], next);
        exchange = level.next.clone();
    }
    waited
}

#[test]
fn a_delay_beyond_the_limit_is_refused() {
    let (limit, ms) = (
        Duration::from_secs(MAX_SECONDS.into()),
        Duration::from_millis(1),
    );

    assert_eq!(seconds("q", limit, ms).unwrap(), MAX_SECONDS);
    for (delay, granularity) in [
        (limit + ms, ms),
        (limit, Duration::from_secs(2)),
        (Duration::MAX, ms),
        (ms, Duration::MAX),
    ] {
        let refused = seconds("q", delay, granularity);
        assert!(matches!(refused, Err(Error::DelayTooLong { .. })));
    }
}

#[test]
fn the_limit_is_counted_in_years() {
    let years = Duration::from_secs(8 * 366 * 24 * 60 * 60);

    assert!(seconds("q", years, Duration::from_secs(1)).is_ok());
}

#[test]
fn jobs_ahead_have_a_ladder_of_their_own_where_they_would_hold_others_up() {
    for (priority, expires_by_priority, ladder) in [
        (0, false, Ladder::Common),
        (4, false, Ladder::Common),
        (5, false, Ladder::Ahead),
        (255, false, Ladder::Ahead),
        (255, true, Ladder::Common),
    ] {
        assert_eq!(Ladder::of(priority, expires_by_priority), ladder);
    }
}

#[test]
fn no_two_levels_share_a_name() {
    let levels = [Ladder::Common, Ladder::Ahead].map(Ladder::levels);
    let mut names: Vec<_> = levels
        .into_iter()
        .flatten()
        .map(|it| it.queue.name)
        .collect();
    names.extend([DUE.into(), UNROUTABLE.into()]);
    names.sort();
    names.dedup();

    assert_eq!(names.len(), 2 * LEVELS as usize + 2);
}

#[test]
fn a_job_reaches_its_queue_and_no_other() {
    let queues = [
        "q", "a.q", "a", "q.#", "#", "*", "a.*", "%2A", "1.q", "", ".", "ä.q",
    ];
    for to in queues {
        let key = routing_key(to, 5);
        let reached: Vec<_> = queues
            .into_iter()
            .filter(|it| takes(&due_key(it), &key))
            .collect();
        assert_eq!(reached, [to]);
    }
}

proptest! {
    #[test]
    fn no_wait_is_shorter_than_the_delay(ms in 0..=u64::from(MAX_SECONDS) * 1000, step in 0..100_000u64) {
        let delay = Duration::from_millis(ms);

        match seconds("q", delay, Duration::from_millis(step)) {
            Ok(seconds) => for ladder in [Ladder::Common, Ladder::Ahead] {
                let waited = walk(ladder, seconds, &routing_key("a.queue", seconds));
                prop_assert!(waited >= i64::try_from(ms).unwrap());
                prop_assert_eq!(waited, i64::from(seconds) * 1000);
                prop_assert!(seconds >= 1);
            },
            Err(_) => prop_assert!(ms + step > u64::from(MAX_SECONDS) * 1000),
        }
    }
}
