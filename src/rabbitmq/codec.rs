//! Pure: envelope ⇄ AMQP properties and body.

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, LongString, ShortString},
};

use crate::{Envelope, limits::MAX_NAME_BYTES};

/// Header: why a job is dead.
pub const DEATH_REASON: &str = "x-death-reason";
/// Header: the queue a dead job was on.
pub const ORIGINAL_QUEUE: &str = "x-original-queue";
/// Header: how often a dead job ran.
pub const ATTEMPTS: &str = "x-attempts";
/// Header: the run a message stands for.
pub const ATTEMPT: &str = "x-attempt";
/// Header: how often a job was deferred.
pub const DEFERRALS: &str = "x-deferrals";
/// The reason of a dead letter whose body is not an envelope.
pub const MALFORMED: &str = "malformed envelope";

const PERSISTENT: u8 = 2;

/// The properties of a message that carries `envelope`. The body alone is the truth; these mirror
/// it for operators.
pub fn properties(envelope: &Envelope) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert(ATTEMPT.into(), AMQPValue::LongUInt(envelope.attempt));
    headers.insert(DEFERRALS.into(), AMQPValue::LongUInt(envelope.deferrals));
    BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(PERSISTENT)
        .with_message_id(short(&envelope.job_id.to_string()))
        .with_type(short(&envelope.job_type))
        .with_priority(envelope.priority)
        .with_headers(headers)
}

/// The properties of the dead letter of `envelope`, for a connection with this frame size.
pub fn dead_properties(envelope: &Envelope, reason: &str, frame_max: u32) -> BasicProperties {
    let properties = properties(envelope);
    let mut headers = properties.headers().clone().unwrap_or_default();
    death(&mut headers, &envelope.queue, reason, frame_max);
    headers.insert(ATTEMPTS.into(), AMQPValue::LongUInt(envelope.attempt));
    properties.with_headers(headers)
}

/// The properties of the dead letter of a body that is not an envelope: what the original said of
/// its content, without its headers, expiration and user id.
pub fn malformed_properties(
    original: &BasicProperties,
    queue: &str,
    frame_max: u32,
) -> BasicProperties {
    let mut headers = FieldTable::default();
    death(&mut headers, queue, MALFORMED, frame_max);
    let mut properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_headers(headers);
    if let Some(content_type) = original.content_type() {
        properties = properties.with_content_type(content_type.clone());
    }
    if let Some(encoding) = original.content_encoding() {
        properties = properties.with_content_encoding(encoding.clone());
    }
    if let Some(id) = original.message_id() {
        properties = properties.with_message_id(id.clone());
    }
    if let Some(kind) = original.kind() {
        properties = properties.with_type(kind.clone());
    }
    properties
}

fn death(headers: &mut FieldTable, queue: &str, reason: &str, frame_max: u32) {
    // The header frame must fit, or the broker closes the connection: 2 KiB are kept for the rest.
    let limit = match frame_max {
        0 => 16 * 1024,
        frame_max => (frame_max as usize).saturating_sub(2048).min(16 * 1024),
    };
    headers.insert(DEATH_REASON.into(), long(cut(reason, limit)));
    // A body someone else published may name a queue of any length.
    headers.insert(ORIGINAL_QUEUE.into(), long(cut(queue, MAX_NAME_BYTES)));
}

fn long(text: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(text))
}

/// A name or type as AMQP can carry it.
pub(super) fn short(text: &str) -> ShortString {
    cut(text, MAX_NAME_BYTES).into()
}

/// At most `limit` bytes of `text`, cut between characters.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn envelope(payload: &str) -> Envelope {
        Envelope::raw("send", "emails", serde_json::from_str(payload).unwrap())
    }

    #[test]
    fn counters_saturate() {
        let mut last = envelope("1");
        last.attempt = u32::MAX;
        last.deferrals = u32::MAX;

        assert_eq!(last.next_attempt().attempt, u32::MAX);
        assert_eq!(last.deferred(3).deferrals, u32::MAX);
    }

    #[test]
    fn the_next_attempt_drops_the_priority_and_a_deferral_sets_it() {
        let first = envelope("1").with_correlation_id("c").deferred(9);

        let next = first.next_attempt();

        assert_eq!((first.attempt, first.deferrals, first.priority), (1, 1, 9));
        assert_eq!((next.attempt, next.deferrals, next.priority), (2, 1, 0));
        assert_eq!(next.job_id, first.job_id);
        assert_eq!(next.correlation_id, first.correlation_id);
    }

    #[test]
    fn a_long_type_is_cut_between_characters() {
        let mut long = envelope("1");
        long.job_type = "ä".repeat(200);

        let kind = properties(&long).kind().clone().unwrap();

        assert_eq!(kind.as_str(), "ä".repeat(127));
    }

    #[test]
    fn a_reason_fits_the_frame() {
        let reason = "ü".repeat(1_000_000);
        for frame_max in [4096, 8192, 131_072, 0] {
            let properties = dead_properties(&envelope("1"), &reason, frame_max);

            let headers = properties.headers().clone().unwrap();
            let AMQPValue::LongString(cut) = &headers.inner()[DEATH_REASON] else {
                panic!("{headers:?}");
            };
            assert!(cut.as_bytes().len() + 2048 <= frame_max.max(18_432) as usize);
            assert!(
                std::str::from_utf8(cut.as_bytes())
                    .unwrap()
                    .chars()
                    .all(|c| c == 'ü')
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_itself(
            job_type in ".*", queue in ".*", attempt: u32, enqueued_at_ms: u64, deferrals: u32,
            priority: u8, correlation_id in proptest::option::of(".*"), payload in ".*",
        ) {
            let mut sent = Envelope::raw(job_type, queue, serde_json::value::to_raw_value(&payload).unwrap());
            sent.attempt = attempt;
            sent.enqueued_at_ms = enqueued_at_ms;
            sent.deferrals = deferrals;
            sent.priority = priority;
            sent.correlation_id = correlation_id;

            prop_assert_eq!(Envelope::from_bytes(&sent.to_bytes()).unwrap(), sent);
        }

        #[test]
        fn no_body_panics(body: Vec<u8>) {
            let _ = Envelope::from_bytes(&body);
        }
    }
}
