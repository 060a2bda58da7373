//! A job that ends every process it runs in.

use std::{
    collections::BTreeMap,
    env,
    io::Write,
    process::ExitCode,
    sync::{Arc, Mutex},
};

use futures_lite::future::zip;
use queuey_rabbitmq::{
    Backend, DeadLetterCause, QueueConfig, QueueKind, RabbitMqBackend, codec, prelude::*,
};

use crate::{
    process::{Process, live},
    support::{Broker, amqp_url, is_long, jobs::*, pause, until},
};

const QUEUE: &str = "QUEUEY_CHAOS_CRASH_LOOP";
const GOOD: u64 = 30;
/// The job that aborts.
const BAD: u64 = 0;

/// The last crashes are the longest waits apart.
fn limit() -> u32 {
    if is_long() { 6 } else { 5 }
}

/// Works on the queue that the environment names, until it is killed or aborts.
pub fn child() -> Option<ExitCode> {
    let words = env::var(QUEUE).ok()?;
    let queue = match words.split_once(' ')? {
        ("quorum", name) => QueueConfig::new(name).kind(QueueKind::Quorum),
        ("flat", name) => QueueConfig::new(name).max_priority(0),
        (_, name) => QueueConfig::new(name),
    };
    let work = async {
        let backend = RabbitMqBackend::connect(amqp_url().unwrap()).await?;
        let worker = Worker::builder(backend)
            .queues(&[named(&queue.prefetch(4))])
            .crash_limit(limit())
            .handler_fn(|Number(number), _| async move {
                if number == BAD {
                    std::process::abort();
                }
                pause(20 * MS).await;
                println!("{number}");
                Ok(std::io::stdout().flush()?)
            })
            .build()
            .await?;
        worker.run().await.map(drop)
    };
    Some(live(work))
}

type Runs = Arc<Mutex<BTreeMap<u64, usize>>>;

fn start(words: &str, runs: &Runs) -> Process {
    let runs = runs.clone();
    Process::start(QUEUE, words, move |line| {
        let job = line.parse().unwrap();
        *runs.lock().unwrap().entry(job).or_default() += 1;
    })
}

/// Lets a supervisor start a worker again whenever it has crashed; answers how often that was.
async fn supervised(broker: &Broker, queue: QueueConfig) -> u32 {
    let backend = broker.backend().await;
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let words = match (queue.kind, queue.max_priority) {
        (QueueKind::Quorum, _) => format!("quorum {}", queue.name),
        (_, None) => format!("flat {}", queue.name),
        _ => format!("classic {}", queue.name),
    };
    let bad = envelope(&queue, BAD);
    backend.publish(&bad, None).await.unwrap();
    for number in 1..=GOOD {
        let job = envelope(&queue, number);
        backend.publish(&job, None).await.unwrap();
    }
    let runs = Runs::default();
    let dead = backend.dead_queue_name(&queue.name);
    let mut process = start(&words, &runs);
    let mut crashes = 0;
    while broker.ready(&dead).await == Some(0) {
        pause(50 * MS).await;
        if !process.is_alive() {
            crashes += 1;
            assert!(crashes <= 2 * limit(), "it goes on crashing");
            process = start(&words, &runs);
        }
    }
    // Nothing crashes the last one: it does what is left, and what is new.
    let job = envelope(&queue, GOOD + 1);
    backend.publish(&job, None).await.unwrap();
    until("the other jobs", async || {
        runs.lock().unwrap().len() as u64 == GOOD + 1
    })
    .await;
    until("an empty queue", async || {
        broker.listed(&queue.name, &["messages"]) == Some(vec!["0".into()])
    })
    .await;
    assert!(process.is_alive());

    assert_eq!(broker.ready(&dead).await, Some(1));
    let letter = broker.take(&dead).await.unwrap();
    let job = codec::envelope(&letter.body, &letter.properties).unwrap();
    assert_eq!((job.job_id, job.attempt), (bad.job_id, 1));
    assert_eq!(job.enqueued_at_ms, bad.enqueued_at_ms);
    let cause = job.failure().unwrap().cause;
    assert_eq!(cause, Some(DeadLetterCause::CrashLoop));
    let again: usize = runs.lock().unwrap().values().map(|runs| runs - 1).sum();
    eprintln!("    {words}: {crashes} crashes, {again} runs of other jobs again");
    assert!(again <= crashes as usize * 4, "{again} again");
    crashes
}

pub async fn a_job_that_ends_its_process_is_given_up_and_the_others_run(broker: Broker) {
    let flat = supervised(&broker, broker.queue().max_priority(0));
    let classic = supervised(&broker, broker.queue());

    assert_eq!(zip(classic, flat).await, (limit(), limit()));
}

pub async fn the_same_on_a_quorum_queue(broker: Broker) {
    let queue = broker.queue().kind(QueueKind::Quorum);

    assert_eq!(supervised(&broker, queue).await, limit());
}
