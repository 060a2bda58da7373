//! What a job looks like on the wire.

use queuey_rabbitmq::{
    Backend, Delivery, Envelope, Error, QueueConfig, RabbitMqBackend,
    lapin::{BasicProperties, types::AMQPValue},
};

use crate::{
    options,
    support::{Broker, Message, jobs::*, until},
};

async fn declared(broker: &Broker) -> (RabbitMqBackend, QueueConfig) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    (backend, queue)
}

/// Publishes `job`; answers what lies on its queue then.
async fn published(broker: &Broker, backend: &RabbitMqBackend, job: &Envelope) -> Message {
    backend.publish(job, None).await.unwrap();
    broker.take(&job.queue).await.expect("the job")
}

/// Headers in the order of their names.
fn headers(message: &Message) -> Vec<(String, AMQPValue)> {
    let headers = message.properties.headers().as_ref().unwrap();
    headers
        .inner()
        .iter()
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect()
}

fn golden(queue: &str) -> String {
    format!(
        r#"{{"job_id":"6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab","job_type":"send","queue":"{queue}","attempt":3,"enqueued_at_ms":1700000000000,"deferrals":2,"priority":7,"correlation_id":"order-7","payload":{{"to":"a@b.c", "n":1.0}}}}"#
    )
}

pub async fn a_job_has_these_properties_and_this_body(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let body = golden(&queue.name);
    let job = Envelope::from_bytes(body.as_bytes()).unwrap();

    let message = published(&broker, &backend, &job).await;

    assert_eq!(String::from_utf8_lossy(&message.body), body);
    assert_eq!(
        headers(&message),
        [
            ("x-attempt".to_owned(), AMQPValue::LongUInt(3)),
            ("x-deferrals".to_owned(), AMQPValue::LongUInt(2)),
        ]
    );
    let expected = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(2)
        .with_message_id("6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab".into())
        .with_type("send".into())
        .with_priority(7)
        .with_headers(message.properties.headers().clone().unwrap());
    assert_eq!(message.properties, expected);
}

pub async fn a_job_without_priority_says_so(broker: Broker) {
    let (backend, queue) = declared(&broker).await;

    let message = published(&broker, &backend, &envelope(&queue, 1)).await;

    assert_eq!(*message.properties.priority(), Some(0));
}

pub async fn a_waiting_job_has_the_properties_of_any_other(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let hold = backend.hold_queue_name(&queue.name, 20_000);
    broker.remove_later(&hold);
    let job = envelope(&queue, 1).next_attempt();
    let direct = published(&broker, &backend, &job).await;

    backend.publish(&job, Some(20_000 * MS)).await.unwrap();

    let held = broker.take(&hold).await.expect("the job");
    assert_eq!(
        (held.body, held.properties),
        (direct.body, direct.properties)
    );
}

pub async fn a_dead_letter_has_these_headers_on_top(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let body = golden(&queue.name);
    let job = Envelope::from_bytes(body.as_bytes()).unwrap();
    let alive = published(&broker, &backend, &job).await;
    backend.publish(&job, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    let delivery = next(&mut deliveries).await;
    delivery.dead_letter("no such customer").await.unwrap();

    let dead = backend.dead_queue_name(&queue.name);
    let letter = broker.take(&dead).await.expect("a dead letter");
    assert_eq!(letter.body, alive.body);
    let text = |text: &str| AMQPValue::LongString(text.into());
    assert_eq!(
        headers(&letter),
        [
            ("x-attempt".to_owned(), AMQPValue::LongUInt(3)),
            ("x-attempts".to_owned(), AMQPValue::LongUInt(3)),
            ("x-death-reason".to_owned(), text("no such customer")),
            ("x-deferrals".to_owned(), AMQPValue::LongUInt(2)),
            ("x-original-queue".to_owned(), text(&queue.name)),
        ]
    );
    let same_headers = letter.properties.headers().clone().unwrap();
    assert_eq!(
        letter.properties,
        alive.properties.with_headers(same_headers)
    );
}

pub async fn a_long_job_type_is_cut_in_the_properties_alone(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    // Byte 255 is in the middle of a character.
    let job_type = format!("{}{}", "x", "ß".repeat(150));
    let payload = envelope(&queue, 1).payload;
    let job = Envelope::raw(&*job_type, &queue.name, payload);

    let message = published(&broker, &backend, &job).await;

    assert_eq!(message.envelope().job_type, job_type);
    let kind = message.properties.kind().clone().unwrap();
    assert_eq!(kind.as_str(), &job_type[..255]);
}

pub async fn a_correlation_id_of_a_megabyte_travels(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let job = envelope(&queue, 1).with_correlation_id("ß".repeat(500_000));
    backend.publish(&job, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    let delivery = next(&mut deliveries).await;
    assert_eq!(*delivery.envelope(), job);
    delivery.dead_letter("too long").await.unwrap();

    let dead = backend.dead_queue_name(&queue.name);
    assert_eq!(broker.take(&dead).await.unwrap().envelope(), job);
}

pub async fn the_longest_name_can_be_published_to_and_consumed(broker: Broker) {
    let (backend, _) = declared(&broker).await;
    let name = broker.name();
    let queue = QueueConfig::new(format!("{name}{}", "q".repeat(255 - name.len())));
    broker.remove_later(&queue.name);
    let missing = backend.publish(&envelope(&queue, 1), None).await;
    broker.declare(&queue.name, &[]).await;

    backend.publish(&envelope(&queue, 1), None).await.unwrap();

    assert!(matches!(missing, Err(Error::Unroutable { .. })));
    let mut deliveries = backend.consume(&queue).await.unwrap();
    assert_eq!(ack_numbers(&mut deliveries, 1).await, [1]);
}

pub async fn a_longer_name_is_refused_and_nothing_breaks(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    for length in [256, 1_000_000] {
        let long = QueueConfig::new("q".repeat(length));
        let job = envelope(&long, 1);

        let answers = [
            backend.publish(&job, None).await,
            backend.declare(std::slice::from_ref(&long)).await,
            backend.consume(&long).await.map(drop),
        ];

        for answer in answers {
            assert!(
                matches!(answer, Err(Error::NameTooLong { len, max: 255, .. }) if len >= length)
            );
        }
        let waiting = backend.publish(&job, Some(MS)).await;
        assert!(matches!(waiting, Err(Error::UnknownQueue(_))));
    }
    published(&broker, &backend, &envelope(&queue, 1)).await;
}

pub async fn a_body_that_names_a_huge_queue_can_be_settled(broker: Broker) {
    let (backend, queue) = declared(&broker).await;
    let job = envelope(&QueueConfig::new("ß".repeat(500_000)), 1);
    let properties = BasicProperties::default();
    broker
        .publish(&queue.name, &job.to_bytes(), properties)
        .await;
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = next(&mut deliveries).await;
    let again = delivery.envelope().next_attempt();

    let refused = delivery.retry(&again, MS).await.unwrap_err();
    let delivery = refused.delivery.expect("nothing was acked");
    delivery.dead_letter("no such queue").await.unwrap();

    assert!(matches!(refused.error, Error::UnknownQueue(_)));
    let dead = backend.dead_queue_name(&queue.name);
    let letter = broker.take(&dead).await.expect("a dead letter");
    assert_eq!(letter.body, job.to_bytes());
    let header = letter.header("x-original-queue").unwrap();
    assert_eq!(header, "ß".repeat(127));
}

pub async fn the_longest_dead_letter_fits_the_smallest_frame(broker: Broker) {
    let backend = RabbitMqBackend::with_options(
        format!("{}?frame_max=8192", broker.url),
        options(MS).runtime(broker.runtime.clone()),
    )
    .await
    .unwrap();
    let name = broker.name();
    let queue = QueueConfig::new(format!("{name}{}", "q".repeat(235 - name.len())));
    for queue in [queue.name.clone(), backend.dead_queue_name(&queue.name)] {
        broker.remove_later(&queue);
    }
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let malformed = BasicProperties::default()
        .with_content_type("c".repeat(255).into())
        .with_content_encoding("e".repeat(255).into())
        .with_message_id("m".repeat(255).into())
        .with_type("t".repeat(255).into());
    broker.publish(&queue.name, b"{", malformed).await;
    let payload = envelope(&queue, 1).payload;
    let job = Envelope::raw("t".repeat(300), &queue.name, payload);
    backend.publish(&job, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    let delivery = next(&mut deliveries).await;
    delivery.dead_letter(&"ß".repeat(500_000)).await.unwrap();

    let dead = backend.dead_queue_name(&queue.name);
    // The malformed body is set aside by itself.
    until("both dead letters", async || {
        broker.ready(&dead).await == Some(2)
    })
    .await;
    let letters = [broker.take(&dead).await, broker.take(&dead).await];
    let bodies = letters.map(|letter| letter.expect("a dead letter").body);
    assert!(bodies.contains(&b"{".to_vec()) && bodies.contains(&job.to_bytes()));
}
