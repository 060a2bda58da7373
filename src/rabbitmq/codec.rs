//! Pure: envelope ⇄ AMQP properties and body.

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, LongString, ShortString},
};

use crate::{
    Envelope, Failure,
    limits::{MAX_NAME_BYTES, cut},
};

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
/// Header: how a job failed, as JSON; see [`failure`].
pub const FAILURE: &str = "x-failure";
/// Header: how often a process ended with a job in hand; absent where none did.
pub const CRASHES: &str = "x-crashes";
/// Header: how often a quorum queue got a message back without an answer.
const DELIVERY_COUNT: &str = "x-delivery-count";
/// The reason of a dead letter whose body is not an envelope.
pub const MALFORMED: &str = "malformed envelope";

const PERSISTENT: u8 = 2;
/// What a reason may take, in bytes.
const MAX_REASON: usize = 16 * 1024;

/// The properties of a message that carries `envelope`, without its failure. The body alone is the
/// truth; these mirror it for operators.
pub fn properties(envelope: &Envelope) -> BasicProperties {
    describe(envelope, headers(envelope))
}

fn headers(envelope: &Envelope) -> FieldTable {
    let mut headers = FieldTable::default();
    headers.insert(ATTEMPT.into(), AMQPValue::LongUInt(envelope.attempt));
    headers.insert(DEFERRALS.into(), AMQPValue::LongUInt(envelope.deferrals));
    headers
}

fn describe(envelope: &Envelope, headers: FieldTable) -> BasicProperties {
    BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(PERSISTENT)
        .with_message_id(short(&envelope.job_id.to_string()))
        .with_type(short(&envelope.job_type))
        .with_priority(envelope.priority)
        .with_headers(headers)
}

/// The properties of a message that carries `envelope` and its failure, for a connection with this
/// frame size.
pub fn full_properties(envelope: &Envelope, frame_max: u32) -> BasicProperties {
    let mut headers = headers(envelope);
    if let Some(failure) = envelope.failure() {
        insert_failure(&mut headers, failure, frame_max);
    }
    if envelope.crashes > 0 {
        headers.insert(CRASHES.into(), AMQPValue::LongUInt(envelope.crashes));
    }
    describe(envelope, headers)
}

/// The properties of the dead letter of `envelope`, for a connection with this frame size.
pub fn dead_properties(envelope: &Envelope, reason: &str, frame_max: u32) -> BasicProperties {
    dead_properties_with(envelope, envelope.failure(), reason, frame_max)
}

/// The same with another failure than the envelope's.
pub(super) fn dead_properties_with(
    envelope: &Envelope,
    failure: Option<&Failure>,
    reason: &str,
    frame_max: u32,
) -> BasicProperties {
    let mut headers = headers(envelope);
    let taken = failure.map_or(0, |it| insert_failure(&mut headers, it, frame_max));
    death(
        &mut headers,
        &envelope.queue,
        reason,
        space(frame_max) - taken,
    );
    headers.insert(ATTEMPTS.into(), AMQPValue::LongUInt(envelope.attempt));
    describe(envelope, headers)
}

/// How the job of this message failed, if it did and the message says so.
///
/// Whatever else is in that header counts as nothing.
pub fn failure(properties: &BasicProperties) -> Option<Failure> {
    let header = properties.headers().as_ref()?.inner().get(FAILURE)?;
    let AMQPValue::LongString(json) = header else {
        return None;
    };
    serde_json::from_str(str::from_utf8(json.as_bytes()).ok()?).ok()
}

/// How often the quorum queue of this message got it back without an answer.
pub(super) fn delivery_count(properties: &BasicProperties) -> u32 {
    count(properties, DELIVERY_COUNT)
}

/// Whatever else is in that header counts as nothing.
fn count(properties: &BasicProperties, header: &str) -> u32 {
    let headers = properties.headers().as_ref();
    let number = headers.and_then(|it| match it.inner().get(header)? {
        AMQPValue::LongUInt(it) => Some((*it).into()),
        AMQPValue::LongInt(it) => Some((*it).into()),
        AMQPValue::LongLongInt(it) => Some(*it),
        AMQPValue::ShortUInt(it) => Some((*it).into()),
        AMQPValue::ShortInt(it) => Some((*it).into()),
        AMQPValue::ShortShortUInt(it) => Some((*it).into()),
        AMQPValue::ShortShortInt(it) => Some((*it).into()),
        _ => None,
    });
    number.map_or(0, |it: i64| u32::try_from(it.max(0)).unwrap_or(u32::MAX))
}

/// The job of this message: its body, how it failed, and how often it was in hand at a crash.
pub fn envelope(body: &[u8], properties: &BasicProperties) -> serde_json::Result<Envelope> {
    let mut envelope = Envelope::from_bytes(body)?;
    envelope.crashes = count(properties, CRASHES);
    Ok(match failure(properties) {
        Some(failure) => envelope.with_failure(&failure),
        None => envelope,
    })
}

/// The properties of the dead letter of a body that is not an envelope: what the original said of
/// its content, without its headers, expiration and user id.
pub fn malformed_properties(
    original: &BasicProperties,
    queue: &str,
    frame_max: u32,
) -> BasicProperties {
    let mut headers = FieldTable::default();
    death(&mut headers, queue, MALFORMED, space(frame_max));
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

/// The properties of `envelope`, dead in a message with the properties `original` and now a job
/// again. Headers of others are kept, and how it failed; those of its death, which brokers read too,
/// are not.
pub fn revived_properties(original: &BasicProperties, envelope: &Envelope) -> BasicProperties {
    let revived = properties(envelope);
    let mut headers = original
        .headers()
        .clone()
        .unwrap_or_default()
        .inner()
        .clone();
    headers.retain(|name, _| !is_of_death(name.as_str()));
    if let Some(ours) = revived.headers() {
        headers.extend(ours.inner().clone());
    }
    revived.with_headers(headers.into())
}

fn is_of_death(header: &str) -> bool {
    let by_brokers = ["x-death", "x-first-death-", "x-last-death-"];
    by_brokers.iter().any(|start| header.starts_with(start))
        || [
            ORIGINAL_QUEUE,
            ATTEMPTS,
            CRASHES,
            DELIVERY_COUNT,
            "x-acquired-count",
        ]
        .contains(&header)
}

/// What long texts may take in a frame: the headers must fit one, or the broker closes the
/// connection. 2 KiB are kept for the rest.
fn space(frame_max: u32) -> usize {
    match frame_max {
        0 => 2 * MAX_REASON,
        frame_max => (frame_max as usize).saturating_sub(2048),
    }
}

/// Adds as much of `failure` as a quarter of the space holds; answers how many bytes that is.
fn insert_failure(headers: &mut FieldTable, failure: &Failure, frame_max: u32) -> usize {
    let limit = Failure::MAX_BYTES.min(space(frame_max) / 4);
    let Some(json) = failure.to_json(limit) else {
        return 0;
    };
    headers.insert(FAILURE.into(), long(&json));
    json.len()
}

fn death(headers: &mut FieldTable, queue: &str, reason: &str, space: usize) {
    headers.insert(
        DEATH_REASON.into(),
        long(cut(reason, space.min(MAX_REASON))),
    );
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

    #[test]
    fn a_failure_and_a_reason_share_the_frame() {
        let huge = "\u{1}".repeat(1_000_000);
        let mut failed = Failure::new(1, &*huge);
        failed.chain = vec![huge.clone(); 40];
        let job = envelope("1").with_failure(&failed);
        for frame_max in [4096, 8192, 131_072, 0] {
            let alive = full_properties(&job, frame_max);
            let dead = dead_properties(&job, &huge, frame_max);

            assert!(failure(&alive).is_some() && failure(&dead) == failure(&alive));
            for properties in [alive, dead] {
                let headers = properties.headers().clone().unwrap();
                let texts = headers.inner().values().map(|value| match value {
                    AMQPValue::LongString(text) => text.as_bytes().len(),
                    _ => 0,
                });
                let space = if frame_max == 0 {
                    32_768
                } else {
                    frame_max - 2048
                };
                // The queue's name is counted with the rest.
                assert!(texts.sum::<usize>() <= space as usize + "emails".len());
            }
        }
    }

    #[test]
    fn a_job_is_read_with_its_failure() {
        let failed = Failure::new(1, "no");
        let job = envelope("1").with_failure(&failed);

        let read = super::envelope(&job.to_bytes(), &full_properties(&job, 131_072)).unwrap();

        assert_eq!((read.failure(), &read), (Some(&failed), &job));
        assert_eq!(failure(&properties(&job)), None);
    }

    #[test]
    fn what_is_no_failure_counts_as_none() {
        let text = |text: &str| AMQPValue::LongString(text.into());
        for garbage in [
            AMQPValue::Void,
            AMQPValue::LongUInt(7),
            AMQPValue::FieldTable(FieldTable::default()),
            AMQPValue::LongString(LongString::from(b"\xff\x00".to_vec())),
            text(""),
            text("{}"),
            text("null"),
            text(r#"{"attempt":-1,"failed_at_ms":0}"#),
            text(&"[".repeat(10_000)),
            text(&r#"{"attempt":1,"failed_at_ms":0,"chain":["x"]}"#.repeat(2)),
        ] {
            let mut headers = FieldTable::default();
            headers.insert(FAILURE.into(), garbage);
            let properties = BasicProperties::default().with_headers(headers);

            assert_eq!(failure(&properties), None);
            let body = envelope("1").to_bytes();
            assert!(
                super::envelope(&body, &properties)
                    .unwrap()
                    .failure()
                    .is_none()
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
