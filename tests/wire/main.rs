//! Bodies and properties as files: what lies on queues already, and what other programs read.

use queuey_rabbitmq::{
    Envelope, FailureKind, codec,
    lapin::{
        BasicProperties,
        types::{AMQPValue, FieldTable, ShortString},
    },
    prelude::*,
};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    Emails,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Job)]
#[job(queue = Queue::Emails, name = "send")]
struct Send {
    user: u64,
}

macro_rules! body {
    ($name:literal) => {
        // A file ends in a newline, a body does not.
        include_str!(concat!($name, ".json")).trim_ascii_end()
    };
}

const EVERYTHING: &str = body!("everything");
const PLAIN: &str = body!("plain");
const LIMITS: &str = body!("limits");
const PAYLOAD: &str = body!("payload");

fn envelope(user: u64) -> Envelope {
    let mut envelope = Envelope::new(&Send { user }).unwrap();
    envelope.job_id = "6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab".parse().unwrap();
    envelope.enqueued_at_ms = 1_700_000_000_000;
    envelope
}

fn everything() -> Envelope {
    let mut envelope = envelope(7).with_correlation_id("order-7");
    (envelope.attempt, envelope.deferrals, envelope.priority) = (3, 2, 7);
    envelope
}

fn limits() -> Envelope {
    let mut envelope = envelope(u64::MAX).with_correlation_id("");
    envelope.enqueued_at_ms = u64::MAX;
    (envelope.attempt, envelope.deferrals) = (u32::MAX, u32::MAX);
    envelope.priority = u8::MAX;
    envelope
}

fn read(body: &str) -> Envelope {
    Envelope::from_bytes(body.as_bytes()).unwrap()
}

fn written(envelope: &Envelope) -> String {
    String::from_utf8(envelope.to_bytes()).unwrap()
}

#[test]
fn a_body_is_written_and_read_as_its_file_says() {
    for (body, envelope) in [
        (EVERYTHING, everything()),
        (PLAIN, envelope(7)),
        (LIMITS, limits()),
    ] {
        assert_eq!(written(&envelope), body);
        assert_eq!(read(body), envelope);
    }
    assert_eq!(read(LIMITS).decode::<Send>().unwrap().user, u64::MAX);
}

#[test]
fn a_body_from_before_a_field_or_with_unknown_ones_is_read() {
    assert_eq!(read(body!("early")), envelope(7));
    assert_eq!(read(body!("later")), everything());
}

#[test]
fn a_payload_passes_through_byte_for_byte() {
    let (_, payload) = PAYLOAD.split_once(r#""payload":"#).unwrap();
    let payload = payload.strip_suffix('}').unwrap();

    let envelope = read(PAYLOAD);

    assert_eq!(written(&envelope), PAYLOAD);
    assert_eq!(envelope.payload.get(), payload);
    let successor = written(&envelope.next_attempt().deferred(10));
    assert!(successor.ends_with(&format!(r#""payload":{payload}}}"#)));
    assert_eq!(envelope.queue, "mails \"größe\" 🦀");
    assert_eq!(envelope.decode::<Send>().unwrap(), Send { user: 7 });
}

/// What `properties.json` says of `name`, and nothing else.
fn properties(name: &str) -> BasicProperties {
    let file: Value = serde_json::from_str(include_str!("properties.json")).unwrap();
    let text = |value: &Value| ShortString::from(value.as_str().unwrap());
    let mut properties = BasicProperties::default();
    for (key, value) in file[name].as_object().unwrap() {
        let byte = || value.as_u64().unwrap().try_into().unwrap();
        properties = match key.as_str() {
            "content_type" => properties.with_content_type(text(value)),
            "delivery_mode" => properties.with_delivery_mode(byte()),
            "message_id" => properties.with_message_id(text(value)),
            "type" => properties.with_type(text(value)),
            "priority" => properties.with_priority(byte()),
            "headers" => properties.with_headers(headers(value)),
            _ => panic!("{key}"),
        };
    }
    properties
}

fn headers(file: &Value) -> FieldTable {
    let mut headers = FieldTable::default();
    for (name, value) in file.as_object().unwrap() {
        let value = match value {
            Value::String(text) => AMQPValue::LongString(text.as_str().into()),
            number => AMQPValue::LongUInt(number.as_u64().unwrap().try_into().unwrap()),
        };
        headers.insert(name.as_str().into(), value);
    }
    headers
}

#[test]
fn a_message_has_the_properties_of_the_file() {
    for (name, body) in [
        ("everything", EVERYTHING),
        ("plain", PLAIN),
        ("limits", LIMITS),
    ] {
        assert_eq!(codec::properties(&read(body)), properties(name), "{name}");
    }
}

#[test]
fn a_dead_letter_has_the_properties_of_the_file() {
    let reason = "größe: no such customer";
    let original = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_priority(3)
        .with_expiration("1000".into())
        .with_headers(headers(&serde_json::json!({ "x-attempt": 9 })));

    let dead = codec::dead_properties(&read(EVERYTHING), reason, 131_072);
    let malformed = codec::malformed_properties(&original, "emails", 131_072);

    assert_eq!(dead, properties("everything, dead"));
    assert_eq!(malformed, properties("malformed, dead"));
}

#[test]
fn a_failure_is_read_and_written_as_its_file_says() {
    let file = body!("failure");
    let failure: Failure = serde_json::from_str(file).unwrap();

    assert_eq!((failure.attempt, failure.kind), (3, FailureKind::Panic));
    assert_eq!(failure.error_type.as_deref(), Some("app::Unreachable"));
    assert_eq!(failure.chain, ["cannot send", "größe: refused"]);
    assert_eq!(failure.place.as_deref(), Some("src/mail.rs:7:9"));
    assert_eq!((&*failure.host, failure.pid), ("mail-1", 4711));
    assert_eq!(failure.first_failed_at_ms, 1_700_000_000_000);
    assert_eq!(failure.failed_at_ms, 1_700_000_060_000);
    assert_eq!(failure.cause, Some(DeadLetterCause::Exhausted));
    let earlier = failure.earlier.iter();
    let earlier: Vec<_> = earlier
        .map(|it| (it.attempt, it.at_ms, &*it.error))
        .collect();
    assert_eq!(
        earlier,
        [
            (1, 1_700_000_000_000, "timed out after 5s"),
            (2, 1_700_000_030_000, "cannot send: refused"),
        ]
    );
    let job = read(PLAIN).with_failure(&failure);
    for (name, written) in [
        ("plain", codec::full_properties(&job, 131_072)),
        ("plain, dead", codec::dead_properties(&job, "no", 131_072)),
    ] {
        let headers = written.headers().clone().unwrap();
        let value = &headers.inner()["x-failure"];
        assert_eq!(*value, AMQPValue::LongString(file.into()), "{name}");
    }
    assert_eq!(written(&job), PLAIN);
}

#[test]
fn crashes_are_told_beside_the_body_until_the_job_is_dead() {
    let mut counted = headers(&serde_json::json!({ "x-crashes": 4 }));
    let read = |headers| {
        let properties = BasicProperties::default().with_headers(headers);
        codec::envelope(PLAIN.as_bytes(), &properties).unwrap()
    };
    let header = |properties: &BasicProperties| {
        let headers = properties.headers().clone().unwrap();
        headers.inner().get("x-crashes").cloned()
    };

    let job = read(counted.clone());

    assert_eq!(job.crashes(), 4);
    assert_eq!(written(&job), PLAIN);
    let told = codec::full_properties(&job, 131_072);
    assert_eq!(header(&told), Some(AMQPValue::LongUInt(4)));
    assert_eq!(header(&codec::dead_properties(&job, "no", 131_072)), None);
    assert_eq!(header(&codec::revived_properties(&told, &job)), None);
    for next in [job.next_attempt(), job.deferred(3)] {
        assert_eq!(next.crashes(), 0);
        assert_eq!(header(&codec::full_properties(&next, 131_072)), None);
    }
    for nonsense in [AMQPValue::LongInt(-1), AMQPValue::LongString("4".into())] {
        counted.insert("x-crashes".into(), nonsense);
        assert_eq!(read(counted.clone()).crashes(), 0);
    }
}
