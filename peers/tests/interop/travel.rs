//! A job that one library hands to the other.

use queuey_rabbitmq::{codec, lapin::BasicProperties};
use serde_json::Value;

use crate::{
    jobs::Job,
    library::{End, Library, Run},
    support::{Broker, Message, until},
};

/// The queue names are fixed: what an earlier test left is removed.
async fn fresh<J: Job>(broker: &Broker) {
    for queue in [
        J::queue().to_owned(),
        format!("{}.dead", J::queue()),
        format!("{}.deferred.1000", J::queue()),
    ] {
        broker.delete(&queue).await;
        broker.remove_later(&queue);
    }
}

async fn until_ready(broker: &Broker, queue: &str, count: u32) {
    until(&format!("{count} messages on {queue}"), async || {
        broker.ready(queue).await == Some(count)
    })
    .await;
}

pub async fn an_enqueued_job_runs<A: Library, B: Library, J: Job>(broker: Broker) {
    fresh::<J>(&broker).await;
    let job_id = A::enqueue(&broker, &J::new("hello"), "order-7").await;

    let run = B::run_one::<J>(&broker, End::Done).await;

    let expected = Run {
        note: "hello".into(),
        job_id,
        job_type: <J as queuey::Job>::NAME,
        queue: J::queue(),
        attempt: 1,
        max_attempts: 3,
        deferrals: 0,
        priority: 0,
        correlation_id: Some("order-7".into()),
    };
    assert_eq!(run, expected);
    assert_eq!(broker.ready(J::queue()).await, Some(0));
}

pub async fn a_retried_job_comes_back<A: Library, B: Library, J: Job>(broker: Broker) {
    fresh::<J>(&broker).await;
    A::enqueue(&broker, &J::new("hello"), "order-7").await;

    let first = A::run_one::<J>(&broker, End::Retry).await;
    let hold = format!("{}.deferred.1000", J::queue());
    assert!(broker.ready(&hold).await.is_some());
    // The other library declares the same hold queue while it exists.
    let second = B::run_one::<J>(&broker, End::Retry).await;
    let third = A::run_one::<J>(&broker, End::Done).await;

    let attempt = |attempt| Run {
        attempt,
        ..first.clone()
    };
    assert_eq!([second, third], [attempt(2), attempt(3)]);
}

pub async fn a_deferred_job_passes_the_backlog<A: Library, B: Library, J: Job>(broker: Broker) {
    fresh::<J>(&broker).await;
    A::enqueue(&broker, &J::new("urgent"), "order-7").await;

    let first = A::run_one::<J>(&broker, End::Defer).await;
    B::enqueue(&broker, &J::new("backlog"), "order-8").await;
    until_ready(&broker, J::queue(), 2).await;
    let second = B::run_one::<J>(&broker, End::Defer).await;
    until_ready(&broker, J::queue(), 2).await;
    let third = A::run_one::<J>(&broker, End::Done).await;
    let last = B::run_one::<J>(&broker, End::Done).await;

    let deferred = |deferrals| Run {
        deferrals,
        priority: 10,
        ..first.clone()
    };
    assert_eq!([second, third], [deferred(1), deferred(2)]);
    assert_eq!(last.note, "backlog");
}

pub async fn a_dead_letter_runs_again<A: Library, B: Library, J: Job>(broker: Broker) {
    fresh::<J>(&broker).await;
    let job_id = A::enqueue(&broker, &J::new("hello"), "order-7").await;
    let first = A::run_one::<J>(&broker, End::Fatal).await;
    let letter = take(&broker, &format!("{}.dead", J::queue())).await;

    // An operator moves it back.
    broker
        .publish(J::queue(), &letter.body, letter.properties)
        .await;
    let second = B::run_one::<J>(&broker, End::Done).await;

    assert_eq!(second, first);
    assert_eq!(second.job_id, job_id);
}

pub async fn both_publish_the_same_message<A: Library, B: Library, J: Job>(broker: Broker) {
    fresh::<J>(&broker).await;

    let mut messages = vec![];
    A::enqueue(&broker, &J::new("hello"), "order-7").await;
    messages.push(take(&broker, J::queue()).await);
    B::enqueue(&broker, &J::new("hello"), "order-7").await;
    messages.push(take(&broker, J::queue()).await);

    assert_eq!(likeness(&messages[0]), likeness(&messages[1]));
}

pub async fn both_write_the_same_dead_letter<A: Library, B: Library, J: Job>(broker: Broker) {
    fresh::<J>(&broker).await;
    let dead = format!("{}.dead", J::queue());

    let mut letters = vec![];
    A::enqueue(&broker, &J::new("hello"), "order-7").await;
    A::run_one::<J>(&broker, End::Fatal).await;
    letters.push(take(&broker, &dead).await);
    A::enqueue(&broker, &J::new("hello"), "order-7").await;
    B::run_one::<J>(&broker, End::Fatal).await;
    letters.push(take(&broker, &dead).await);

    // Ours alone tells how the job failed.
    assert_eq!(failed(&mut letters), [A::NAME == "ours", B::NAME == "ours"]);
    assert_eq!(likeness(&letters[0]), likeness(&letters[1]));
    let reason = letters[0].header("x-death-reason");
    assert_eq!(reason.as_deref(), Some("fatal error: no such customer"));
}

pub async fn a_job_that_failed_elsewhere_fails_here<A: Library, B: Library, J: Job>(
    broker: Broker,
) {
    fresh::<J>(&broker).await;
    let dead = format!("{}.dead", J::queue());
    A::enqueue(&broker, &J::new("hello"), "order-7").await;

    A::run_one::<J>(&broker, End::Retry).await;
    B::run_one::<J>(&broker, End::Retry).await;
    A::run_one::<J>(&broker, End::Fatal).await;

    let mut letters = [take(&broker, &dead).await];
    // Theirs writes no record and passes none on.
    assert_eq!(failed(&mut letters), [A::NAME == "ours"]);
    assert_eq!(letters[0].header("x-attempts").as_deref(), Some("3"));
}

/// Takes off each what it tells of the failure of its job: whether it does, and of that run alone.
fn failed(letters: &mut [Message]) -> Vec<bool> {
    let told = letters.iter_mut().map(|letter| {
        let failure = codec::failure(&letter.properties);
        let mut headers = letter.properties.headers().clone().unwrap().inner().clone();
        headers.remove(codec::FAILURE);
        letter.properties = letter.properties.clone().with_headers(headers.into());
        failure.is_some_and(|it| it.earlier.is_empty() && it.to_string() == "no such customer")
    });
    told.collect()
}

async fn take(broker: &Broker, queue: &str) -> Message {
    until_ready(broker, queue, 1).await;
    broker.take(queue).await.unwrap()
}

/// Everything in a message but its id and its time.
fn likeness(message: &Message) -> (BasicProperties, Value) {
    let id = message.properties.message_id().clone();
    let mut body: Value = serde_json::from_slice(&message.body).unwrap();
    assert_eq!(body["job_id"].as_str(), id.as_ref().map(|id| id.as_str()));
    body["job_id"].take();
    body["enqueued_at_ms"].take();
    let properties = message.properties.clone().with_message_id("".into());
    (properties, body)
}
