use amq_protocol::{
    frame::{AMQPContentHeader, AMQPFrame, WriteContext, gen_frame},
    protocol::{AMQPClass, basic},
};
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};

use super::*;

fn bytes(frames: &[AMQPFrame]) -> Vec<u8> {
    frames.iter().fold(Vec::new(), |bytes, frame| {
        let context = WriteContext::from(bytes);
        gen_frame(frame)(context).unwrap().into_inner().0
    })
}

fn method(method: basic::AMQPMethod) -> AMQPFrame {
    AMQPFrame::Method(1, AMQPClass::Basic(method))
}

fn ack() -> AMQPFrame {
    method(basic::AMQPMethod::Ack(basic::Ack {
        delivery_tag: 7,
        multiple: false,
    }))
}

fn returned(queue: &str, id: Option<&str>) -> [AMQPFrame; 3] {
    let properties = match id {
        Some(id) => BasicProperties::default().with_message_id(id.into()),
        None => BasicProperties::default(),
    };
    [
        method(basic::AMQPMethod::Return(basic::Return {
            reply_code: 312,
            reply_text: "NO_ROUTE".into(),
            exchange: "".into(),
            routing_key: queue.into(),
        })),
        AMQPFrame::Header(
            1,
            AMQPContentHeader {
                class_id: 60,
                body_size: 3,
                properties: with_everything(properties),
            },
        ),
        // A body may look like anything.
        AMQPFrame::Body(1, vec![1, 0, 60]),
    ]
}

/// Whatever comes before the message id.
fn with_everything(properties: BasicProperties) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert("x-attempt".into(), AMQPValue::LongUInt(1));
    properties
        .with_content_type("application/json".into())
        .with_content_encoding("utf-8".into())
        .with_headers(headers)
        .with_delivery_mode(2)
        .with_priority(3)
        .with_correlation_id("order 7".into())
        .with_reply_to("answers".into())
        .with_expiration("1000".into())
        .with_timestamp(1)
        .with_type("mail".into())
}

fn some(text: &str) -> Option<ShortString> {
    Some(text.into())
}

#[test]
fn a_return_is_noted_down_however_its_bytes_come_in() {
    let [a, b, c] = returned("mail", Some("one"));
    let [d, e, f] = returned("mail", None);
    let stream = bytes(&[ack(), a, b, c, AMQPFrame::Heartbeat, ack(), d, e, f, ack()]);
    for width in 1..stream.len() {
        let returns = Arc::<Returns>::default();
        let mut scanner = Scanner::new(returns.clone());

        stream.chunks(width).for_each(|chunk| scanner.pass(chunk));

        let mail = "mail".into();
        assert_eq!(returns.take(&mail, &some("two")), None);
        assert_eq!(returns.take(&"sms".into(), &some("one")), None);
        assert_eq!(returns.take(&mail, &some("one")).unwrap(), "312 NO_ROUTE");
        assert_eq!(returns.take(&mail, &some("one")), None, "it is told once");
        assert!(returns.take(&mail, &None).is_some());
    }
}

#[test]
fn it_is_there_before_the_first_byte_of_the_ack_that_follows() {
    let [method, header, body] = returned("mail", Some("one"));
    let returns = Arc::<Returns>::default();
    let mut scanner = Scanner::new(returns.clone());

    scanner.pass(&bytes(&[method, header, body]));

    assert!(returns.take(&"mail".into(), &some("one")).is_some());
}

#[test]
fn bytes_that_are_no_frames_are_passed_over() {
    let returns = Arc::<Returns>::default();
    let mut scanner = Scanner::new(returns.clone());

    scanner.pass(b"AMQP\0\0\x09\x01");
    scanner.pass(&[METHOD, 0, 1, 0, 0, 0, 4, 0, 60, 0, 50, 0xce]);
    scanner.pass(&[0xff; 64]);

    assert!(returns.lock().is_empty());
}

#[test]
fn the_version_is_that_of_rabbitmq_and_of_no_other_broker() {
    let start = |product: &str| {
        let mut payload = b"\0\x0a\0\x0a\0\x09\0\0\0\x2e".to_vec();
        for (name, value) in [("product", product), ("version", "4.3.6")] {
            payload.push(name.len() as u8);
            payload.extend([name.as_bytes(), b"S"].concat());
            payload.extend((value.len() as u32).to_be_bytes());
            payload.extend(value.as_bytes());
        }
        let size = (payload.len() as u32).to_be_bytes();
        [&b"\x01\0\0"[..], &size, &payload, b"\xce"].concat()
    };
    for (product, version) in [("RabbitMQ", Some("4.3.6")), ("LavinMQ", None)] {
        let returns = Arc::<Returns>::default();
        let mut scanner = Scanner::new(returns.clone());

        let bytes = [start(product), bytes(&[ack()])].concat();
        bytes.chunks(3).for_each(|chunk| scanner.pass(chunk));

        assert_eq!(returns.version(), version);
    }
}
