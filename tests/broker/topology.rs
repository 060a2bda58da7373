//! What stands on the broker behind a queue.

use queuey_rabbitmq::{
    Backend, Delivery, Error, QueueConfig,
    lapin::{ErrorKind, types::AMQPValue},
};

use crate::{
    options,
    support::{Broker, jobs::*, pause},
};

type Arguments = Vec<(&'static str, AMQPValue)>;

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

fn classic(arguments: impl IntoIterator<Item = (&'static str, AMQPValue)>) -> Arguments {
    let mut all = vec![("x-queue-type", text("classic"))];
    all.extend(arguments);
    all
}

/// The queues behind `queue`, which has 4 priorities and jobs that live 600 s, and one with a job
/// that waits 60 s.
fn expected(queue: &str) -> [(String, Arguments); 3] {
    [
        (
            queue.to_owned(),
            classic([
                ("x-max-priority", AMQPValue::ShortShortUInt(4)),
                ("x-message-ttl", AMQPValue::LongLongInt(600_000)),
            ]),
        ),
        (format!("{queue}.dead"), classic([])),
        (
            format!("{queue}.deferred.60000"),
            classic([
                ("x-dead-letter-exchange", text("")),
                ("x-dead-letter-routing-key", text(queue)),
                ("x-expires", AMQPValue::LongLongInt(120_000)),
                ("x-message-ttl", AMQPValue::LongLongInt(60_000)),
            ]),
        ),
    ]
}

async fn declared(broker: &Broker) -> QueueConfig {
    let queue = broker.queue().max_priority(4).message_ttl(600_000 * MS);
    broker.remove_later(&format!("{}.deferred.60000", queue.name));
    let backend = broker.backend().await;
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend
        .defer(&envelope(&queue, 1), 60_000 * MS)
        .await
        .unwrap();
    queue
}

pub async fn queues_have_the_documented_arguments_and_no_others(broker: Broker) {
    let queue = declared(&broker).await;

    for (name, arguments) in expected(&queue.name) {
        broker.declare(&name, &arguments).await;

        let refused = async |durable, arguments: &Arguments| {
            let answer = broker.try_declare(&name, durable, arguments).await;
            let error = answer.expect_err(&format!("{name} is not like {arguments:?}"));
            let ErrorKind::ProtocolError(answer) = error.kind() else {
                panic!("{error}");
            };
            assert_eq!(answer.get_id(), 406, "{error}");
        };
        refused(false, &arguments).await;
        let mut more = arguments.clone();
        more.push(("x-max-length", AMQPValue::LongLongInt(1_000_000)));
        refused(true, &more).await;
        for place in 0..arguments.len() {
            let mut other = arguments.clone();
            other[place].1 = match &other[place] {
                ("x-queue-type", _) => text("quorum"),
                (_, AMQPValue::LongString(_)) => text("other"),
                (_, AMQPValue::ShortShortUInt(value)) => AMQPValue::ShortShortUInt(value + 1),
                (_, AMQPValue::LongLongInt(value)) => AMQPValue::LongLongInt(value + 1),
                other => panic!("{other:?}"),
            };
            refused(true, &other).await;
            // Without a type, the vhost's default counts, which is the same here.
            if other.remove(place).0 != "x-queue-type" {
                refused(true, &other).await;
            }
        }
    }
}

pub async fn an_operator_sees_the_documented_arguments(broker: Broker) {
    let queue = declared(&broker).await;

    for (name, arguments) in expected(&queue.name) {
        let [durable, auto_delete, listed] = &broker
            .listed(&name, &["durable", "auto_delete", "arguments"])
            .expect("declared")[..]
        else {
            panic!("three columns");
        };

        assert_eq!((durable.as_str(), auto_delete.as_str()), ("true", "false"));
        let listed = listed.replace(' ', "");
        assert_eq!(listed.matches("{\"x-").count(), arguments.len(), "{listed}");
        for (argument, value) in arguments {
            let value = match value {
                AMQPValue::LongString(text) if text.as_bytes().is_empty() => "[]".into(),
                AMQPValue::LongString(text) => format!("\"{text}\""),
                AMQPValue::LongLongInt(number) => number.to_string(),
                AMQPValue::ShortShortUInt(number) => number.to_string(),
                other => panic!("{other:?}"),
            };
            let pair = format!("{{\"{argument}\",{value}}}");
            assert!(listed.contains(&pair), "{name} has {listed}, not {pair}");
        }
    }
}

pub async fn a_queue_an_operator_made_is_used_when_it_is_alike(broker: Broker) {
    let queue = broker.queue();
    broker
        .declare(
            &queue.name,
            &classic([("x-max-priority", AMQPValue::LongLongInt(10))]),
        )
        .await;
    let backend = broker.backend().await;

    backend.declare(std::slice::from_ref(&queue)).await.unwrap();

    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    assert_eq!(broker.ready(&queue.name).await, Some(1));
}

pub async fn a_queue_of_another_kind_is_refused_by_name(broker: Broker) {
    let queue = broker.queue();
    broker
        .declare(&queue.name, &[("x-queue-type", text("quorum"))])
        .await;
    let backend = broker.backend().await;

    let refused = backend.declare(&[queue.clone().max_priority(0)]).await;

    assert!(
        matches!(&refused, Err(Error::Precondition { queue: named, argument, .. })
            if *named == queue.name && argument == "x-queue-type"),
        "{refused:?}"
    );
}

pub async fn a_job_goes_every_way_where_a_queue_is_quorum_by_default(broker: Broker) {
    let broker = broker.quorum_vhost().await;
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();

    backend.publish(&envelope(&queue, 7), None).await.unwrap();
    let first = next(&mut deliveries).await;
    let again = first.envelope().next_attempt();
    first.retry(&again, 1000 * MS).await.unwrap();
    let second = next(&mut deliveries).await;
    let later = second.envelope().deferred(10);
    second.defer(&later, 1000 * MS).await.unwrap();
    let third = next(&mut deliveries).await;
    let (attempt, deferrals) = (third.envelope().attempt, third.envelope().deferrals);
    third.dead_letter("enough").await.unwrap();

    assert_eq!((attempt, deferrals), (2, 1));
    let dead = backend.dead_queue_name(&queue.name);
    let dead = broker.take(&dead).await.expect("a dead letter");
    assert_eq!(dead.envelope(), later);
}

pub async fn a_hundred_deferrals_return_where_a_queue_is_quorum_by_default(broker: Broker) {
    let broker = broker.quorum_vhost().await;
    let backend = broker.backend_with(options(1000 * MS)).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();

    // Longer than a lease in all: only a hold whose lease each declare renews keeps them.
    for number in 0..100 {
        let job = envelope(&queue, number);
        backend.defer(&job, 1000 * MS).await.unwrap();
        pause(25 * MS).await;
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();
    let mut numbers = ack_numbers(&mut deliveries, 100).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}
