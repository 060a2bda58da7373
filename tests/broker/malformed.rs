//! Bodies that are not envelopes, and properties nobody expects.

use futures_lite::future;
use queuey_rabbitmq::{
    lapin::{
        BasicProperties,
        types::{AMQPValue, DecimalValue, FieldArray, FieldTable},
    },
    prelude::*,
};

use crate::support::{Broker, Message, jobs::*, until, within};

/// With prefetch 1, a body that is not settled would stop the stream.
async fn declared(broker: &Broker) -> (RabbitMqBackend, QueueConfig) {
    let backend = broker.backend().await;
    let queue = broker.queue().prefetch(1);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

/// Puts `bodies` on a queue, and a good job behind them; answers what is on the dead-letter queue
/// when that job arrives.
async fn set_aside(
    broker: &Broker,
    bodies: impl IntoIterator<Item = (Vec<u8>, BasicProperties)>,
) -> Vec<Message> {
    let (backend, queue) = declared(broker).await;
    let mut count = 0;
    for (body, properties) in bodies {
        broker.publish(&queue.name, &body, properties).await;
        count += 1;
    }
    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
    nothing(&mut deliveries).await;

    let dead = backend.dead_queue_name(&queue.name);
    until("every dead letter", async || {
        broker.ready(&dead).await >= Some(count)
    })
    .await;
    let mut letters = vec![];
    for _ in 0..count {
        let letter = broker.take(&dead).await.expect("a dead letter");
        assert_death(&letter, &queue.name);
        letters.push(letter);
    }
    assert!(broker.take(&dead).await.is_none());
    letters
}

fn assert_death(letter: &Message, queue: &str) {
    assert_eq!(
        letter.header("x-death-reason").as_deref(),
        Some("malformed envelope")
    );
    assert_eq!(letter.header("x-original-queue").as_deref(), Some(queue));
    let headers = letter.properties.headers().as_ref().unwrap();
    assert_eq!(headers.inner().len(), 2, "{headers:?}");
    assert_eq!(*letter.properties.delivery_mode(), Some(2));
}

fn plain(bodies: Vec<Vec<u8>>) -> Vec<(Vec<u8>, BasicProperties)> {
    bodies
        .into_iter()
        .map(|body| (body, BasicProperties::default()))
        .collect()
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

pub async fn bodies_are_set_aside_byte_for_byte(broker: Broker) {
    let good = envelope(&broker.queue(), 1).to_bytes();
    let good = std::str::from_utf8(&good).unwrap();
    let bodies = vec![
        b"".to_vec(),
        b"\0".to_vec(),
        b"\0\0\0\0\0\0\0\0".to_vec(),
        b"\xff\xfe\xfd".to_vec(),
        b"{\"job_id\":\"\xc3\x28\"}".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        b"\"a string\"".to_vec(),
        br#"{"id":7,"task":"send","args":[]}"#.to_vec(),
        good.as_bytes()[..good.len() - 1].to_vec(),
        format!("{good}{good}").into_bytes(),
        format!("{good}\0").into_bytes(),
        format!("\u{feff}{good}").into_bytes(),
        good.replace("\"attempt\":1", "\"attempt\":4294967296")
            .into_bytes(),
        good.replace("\"attempt\":1", "\"attempt\":-1").into_bytes(),
        good.replace("\"payload\":1", "\"payload\":NaN")
            .into_bytes(),
        good.replace("\"job_id\":\"", "\"job_id\":\"x").into_bytes(),
    ];

    let letters = set_aside(&broker, plain(bodies.clone())).await;

    for (letter, body) in letters.iter().zip(&bodies) {
        assert_eq!(letter.body, *body, "{}", String::from_utf8_lossy(body));
    }
}

pub async fn bodies_of_many_levels_are_set_aside(broker: Broker) {
    let bodies = vec![
        nested(100_000).into_bytes(),
        "[".repeat(100_000).into_bytes(),
        format!("{{\"job_id\":{}}}", nested(100_000)).into_bytes(),
        "{\"a\":".repeat(100_000).into_bytes(),
    ];

    let letters = set_aside(&broker, plain(bodies.clone())).await;

    assert!(letters.iter().zip(&bodies).all(|(l, body)| l.body == *body));
}

pub async fn large_bodies_are_set_aside(broker: Broker) {
    let bodies = vec![
        format!("\"{}\"", "x".repeat(1_000_000)).into_bytes(),
        vec![0xff; 15_000_000],
    ];

    let letters = set_aside(&broker, plain(bodies.clone())).await;

    assert!(letters.iter().zip(&bodies).all(|(l, body)| l.body == *body));
}

fn every_type() -> FieldTable {
    let mut array = FieldArray::default();
    array.push(AMQPValue::LongString("in an array".into()));
    array.push(AMQPValue::Void);
    let mut table = FieldTable::default();
    table.insert("inner".into(), AMQPValue::Boolean(true));
    let mut headers = FieldTable::default();
    for (name, value) in [
        ("boolean", AMQPValue::Boolean(true)),
        ("i8", AMQPValue::ShortShortInt(-1)),
        ("u8", AMQPValue::ShortShortUInt(1)),
        ("i16", AMQPValue::ShortInt(-1)),
        ("u16", AMQPValue::ShortUInt(1)),
        ("i32", AMQPValue::LongInt(-1)),
        ("u32", AMQPValue::LongUInt(1)),
        ("i64", AMQPValue::LongLongInt(i64::MIN)),
        ("f32", AMQPValue::Float(0.5)),
        ("f64", AMQPValue::Double(-0.5)),
        (
            "decimal",
            AMQPValue::DecimalValue(DecimalValue { scale: 2, value: 7 }),
        ),
        ("text", AMQPValue::LongString("text".into())),
        ("not text", AMQPValue::LongString(vec![0xff, 0].into())),
        ("bytes", AMQPValue::ByteArray(vec![0, 1].into())),
        ("time", AMQPValue::Timestamp(u64::from(u32::MAX))),
        ("void", AMQPValue::Void),
        ("array", AMQPValue::FieldArray(array)),
        ("table", AMQPValue::FieldTable(table)),
        // What our own headers say is ours to say.
        (
            "x-death-reason",
            AMQPValue::LongString("not malformed".into()),
        ),
        ("x-attempts", AMQPValue::LongUInt(9)),
    ] {
        headers.insert(name.into(), value);
    }
    headers
}

fn many_headers() -> FieldTable {
    let mut headers = FieldTable::default();
    for number in 0..2000 {
        headers.insert(format!("h{number}").into(), AMQPValue::LongUInt(number));
    }
    headers
}

pub async fn headers_of_every_type_do_not_follow_a_malformed_body(broker: Broker) {
    let body = b"not an envelope".to_vec();
    let properties = [every_type(), many_headers()]
        .map(|headers| BasicProperties::default().with_headers(headers));

    let letters = set_aside(&broker, properties.map(|p| (body.clone(), p))).await;

    assert!(letters.iter().all(|letter| letter.body == body));
}

pub async fn headers_of_every_type_do_not_hinder_a_good_job(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    for (number, headers) in [(1, every_type()), (2, many_headers())] {
        let body = envelope(&queue, number).to_bytes();
        let properties = BasicProperties::default().with_headers(headers);
        broker.publish(&queue.name, &body, properties).await;
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();

    assert_eq!(ack_numbers(&mut deliveries, 2).await, [1, 2]);
}

pub async fn a_malformed_body_keeps_what_was_said_of_it(broker: Broker) {
    let user = url::Url::parse(&broker.url).unwrap().username().to_owned();
    let properties = BasicProperties::default()
        .with_content_type("application/x-thing".into())
        .with_content_encoding("gzip".into())
        .with_message_id("m".repeat(255).into())
        .with_type("t".repeat(255).into())
        .with_delivery_mode(1)
        .with_priority(7)
        .with_expiration("60000".into())
        .with_user_id(user.into())
        .with_reply_to("elsewhere".into())
        .with_app_id("theirs".into())
        .with_cluster_id("c".into())
        .with_timestamp(u64::MAX / 2)
        .with_correlation_id("order-7".into());
    let body = b"\x1f\x8b\x08\0".to_vec();

    let letters = set_aside(&broker, [(body.clone(), properties.clone())]).await;

    let letter = &letters[0];
    assert_eq!(letter.body, body);
    let kept = |p: &BasicProperties| {
        (
            p.content_type().clone(),
            p.content_encoding().clone(),
            p.message_id().clone(),
            p.kind().clone(),
        )
    };
    assert_eq!(kept(&letter.properties), kept(&properties));
    assert_eq!(*letter.properties.expiration(), None);
    assert_eq!(*letter.properties.user_id(), None);
}

pub async fn a_hundred_malformed_bodies_do_not_stop_the_stream(broker: Broker) {
    let bodies: Vec<_> = (0..100u8).map(|byte| vec![byte; 3]).collect();

    let letters = set_aside(&broker, plain(bodies)).await;

    assert_eq!(letters.len(), 100);
}

pub async fn an_unknown_key_of_many_levels_is_skipped(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let good = String::from_utf8(envelope(&queue, 1).to_bytes()).unwrap();
    let body = format!("{{\"unknown\":{},{}", nested(100_000), &good[1..]);
    let properties = BasicProperties::default();
    broker
        .publish(&queue.name, body.as_bytes(), properties)
        .await;

    let mut deliveries = backend.consume(&queue).await.unwrap();

    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
}

#[derive(Serialize, Deserialize)]
struct Thing(serde_json::Value);

impl Job for Thing {
    type Queue = Named;
    const NAME: &'static str = "thing";
    const QUEUE: Named = Named("any");
}

pub async fn a_payload_of_many_levels_is_dead_lettered_by_a_worker(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let payload = serde_json::value::RawValue::from_string(nested(100_000)).unwrap();
    let job = Envelope::raw("thing", &queue.name, payload);
    backend.publish(&job, None).await.unwrap();
    let good = Envelope::raw("thing", &queue.name, envelope(&queue, 1).payload);
    backend.publish(&good, None).await.unwrap();
    let worker = Worker::builder(backend.clone())
        .queues(&[named(&queue)])
        .handler_fn(|_: Thing, _: JobContext| async { Ok(()) })
        .build()
        .await
        .unwrap();
    let handle = worker.handle();

    let work = async { worker.run().await.unwrap() };
    let stop = async {
        until("the good job", async || handle.counts().succeeded == 1).await;
        handle.shutdown();
    };
    within("the worker", future::zip(work, stop)).await;

    let dead = backend.dead_queue_name(&queue.name);
    let letter = broker.take(&dead).await.expect("a dead letter");
    assert_eq!(letter.body, job.to_bytes());
    let reason = letter.header("x-death-reason").unwrap();
    assert!(reason.contains("recursion limit"), "{reason}");
}
