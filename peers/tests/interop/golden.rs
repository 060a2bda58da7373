//! What needs no broker: the wire format, names and policies, written by one and read by the other.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::{
    jobs::{from_them::Retried, from_us::Fleet},
    library::{Library, Ours, Theirs},
};

pub fn trials() -> Vec<Trial> {
    macro_rules! facts {
        ($($fact:ident)+) => {
            vec![$(Trial::test(concat!("golden::", stringify!($fact)), || { $fact(); Ok(()) })),+]
        };
    }
    facts! {
        a_body_of_theirs_passes_through_us_unchanged
        a_body_of_ours_passes_through_them_unchanged
        they_sort_a_payload_and_we_keep_it
        an_early_body_means_the_same_to_both
        the_same_bodies_are_malformed
        the_derives_agree
        a_retry_policy_reads_alike
    }
}

fn payloads() -> [Value; 10] {
    [
        json!(null),
        json!(0.1),
        json!(1.0),
        json!(1e21),
        json!(-0.0),
        json!([u64::MAX, i64::MIN, []]),
        json!("quotes \" and \\ and \u{0} and \u{7f} and / and 🦀"),
        json!({}),
        json!({ "a": { "b": [true, { "c": "d" }] }, "b": 1 }),
        json!({ "": "", "ä": 1, "🦀": 2 }),
    ]
}

fn a_body_of_theirs_passes_through_us_unchanged() {
    for payload in payloads() {
        let first = queuey::Envelope::raw("a::B", "q \"ä\"", payload);
        let second = first.clone().with_correlation_id("").next_attempt();
        let mut last = second.deferred(u8::MAX);
        last.attempt = u32::MAX;
        last.enqueued_at_ms = u64::MAX;

        for envelope in [first, second, last] {
            let body = envelope.to_bytes().unwrap();
            assert_eq!(Ours::rewrite(&body), body);
        }
    }
}

fn a_body_of_ours_passes_through_them_unchanged() {
    for payload in payloads() {
        let payload = serde_json::value::to_raw_value(&payload).unwrap();
        let first = queuey_rabbitmq::Envelope::raw("a::B", "q \"ä\"", payload);
        let second = first.clone().with_correlation_id("").next_attempt();
        let mut last = second.deferred(u8::MAX);
        last.attempt = u32::MAX;
        last.enqueued_at_ms = u64::MAX;

        for envelope in [first, second, last] {
            let body = envelope.to_bytes();
            assert_eq!(Theirs::rewrite(&body), body);
        }
    }
}

fn they_sort_a_payload_and_we_keep_it() {
    let body = body(r#""deferrals":0,"priority":0,"payload":{"b":1.50,"a":"\u00e4"}"#);
    let sorted = body.replace(r#"{"b":1.50,"a":"\u00e4"}"#, r#"{"a":"ä","b":1.5}"#);

    assert_eq!(text(Ours::rewrite(body.as_bytes())), body);
    assert_eq!(text(Theirs::rewrite(body.as_bytes())), sorted);
}

fn an_early_body_means_the_same_to_both() {
    let early = body(r#""payload":[1],"from_the_future":{}"#);
    let today = body(r#""deferrals":0,"priority":0,"payload":[1]"#);

    assert_eq!(text(Ours::rewrite(early.as_bytes())), today);
    assert_eq!(text(Theirs::rewrite(early.as_bytes())), today);
}

fn the_same_bodies_are_malformed() {
    let whole = body(r#""payload":1"#);
    let mut bodies: Vec<Vec<u8>> = [
        "",
        "null",
        "[]",
        &whole[1..],
        &format!("{whole},"),
        &body(r#""deferrals":0"#),
        &body(r#""payload":1,"payload":2"#),
        &body(r#""payload":1,"priority":256"#),
        &body(r#""payload":1,"priority":null"#),
        &body(r#""payload":tru"#),
        &whole.replace("6f6c8a56", "6f6c8a5"),
        &whole.replace(r#""attempt":1"#, r#""attempt":-1"#),
        &whole.replace(r#""attempt":1"#, r#""attempt":4294967296"#),
    ]
    .iter()
    .map(|body| body.as_bytes().to_vec())
    .collect();
    let latin_1 = body(r#""payload":"?""#).replace('?', "\u{1}").into_bytes();
    bodies.push(
        latin_1
            .iter()
            .map(|&byte| if byte == 1 { 0xe4 } else { byte })
            .collect(),
    );
    bodies.push([b"\xef\xbb\xbf", whole.as_bytes()].concat());

    for body in bodies {
        let shown = String::from_utf8_lossy(&body);
        assert!(queuey::Envelope::from_bytes(&body).is_err(), "{shown}");
        let ours = queuey_rabbitmq::Envelope::from_bytes(&body);
        assert!(ours.is_err(), "{shown}");
    }
}

fn the_derives_agree() {
    let (theirs, ours) = (
        <Fleet as queuey::QueueSet>::all(),
        <Fleet as queuey_rabbitmq::QueueSet>::all(),
    );
    assert_eq!(theirs, ours);
    for queue in ours {
        let theirs = queuey::QueueSet::config(queue);
        let ours = queuey_rabbitmq::QueueSet::config(queue);
        assert_eq!(theirs.name, ours.name);
        assert_eq!(theirs.prefetch, ours.prefetch);
        assert_eq!(theirs.durable, ours.durable);
        assert_eq!(theirs.message_ttl, ours.message_ttl);
        assert_eq!(theirs.max_priority, ours.max_priority);
        assert_eq!(json!(theirs.retry), json!(ours.retry));
    }
    assert_eq!(
        <Retried as queuey::Job>::NAME,
        <Retried as queuey_rabbitmq::Job>::NAME
    );
}

fn a_retry_policy_reads_alike() {
    let ms = Duration::from_millis(1500);
    let backoff = queuey::Backoff::exponential_with(ms, 1.5, 60 * ms, false);
    for theirs in [
        queuey::RetryPolicy::none(),
        queuey::RetryPolicy::fixed(3, ms),
        queuey::RetryPolicy::exponential(u32::MAX),
        queuey::RetryPolicy::new(0, backoff),
    ] {
        let written = serde_json::to_string(&theirs).unwrap();
        let ours: queuey_rabbitmq::RetryPolicy = serde_json::from_str(&written).unwrap();

        assert_eq!(serde_json::to_string(&ours).unwrap(), written);
    }
}

/// A body of the first release, with these fields at its end.
fn body(end: &str) -> String {
    format!(
        r#"{{"job_id":"6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab","job_type":"a::B","queue":"q","attempt":1,"enqueued_at_ms":1700000000000,{end}}}"#
    )
}

fn text(body: Vec<u8>) -> String {
    String::from_utf8(body).unwrap()
}
