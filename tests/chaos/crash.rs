//! The worker's process is killed.

use std::{
    collections::{BTreeSet, HashMap},
    env,
    io::Write,
    process::ExitCode,
    sync::{Arc, Mutex},
    time::Duration,
};

use queuey_rabbitmq::{Backend, QueueConfig, RabbitMqBackend, RetryPolicy, prelude::*};

use crate::{
    process::{Process, live},
    support::{Broker, amqp_url, is_long, jobs::*, pause, until},
};

const QUEUE: &str = "QUEUEY_CHAOS_QUEUE";
const ATTEMPTS: u32 = 3;

/// Works on the queue that the environment names, until it is killed; a test is its parent.
pub fn child() -> Option<ExitCode> {
    let queue = QueueConfig::new(env::var(QUEUE).ok()?);
    let work = async {
        let backend = RabbitMqBackend::connect(amqp_url().unwrap()).await?;
        let worker = Worker::builder(backend)
            .queues(&[named(&queue)])
            .handler_fn(|Number(number), context: JobContext| async move {
                pause(30 * MS).await;
                let attempt = context.attempt;
                let done = attempt == ATTEMPTS;
                println!("{number} {attempt} {done}");
                std::io::stdout().flush()?;
                match done {
                    true => Ok(()),
                    false => Err(std::io::Error::other("not yet").into()),
                }
            })
            .job_retry_override::<Number>(RetryPolicy::fixed(ATTEMPTS, 1000 * MS))
            .build()
            .await?;
        worker.run().await.map(drop)
    };
    Some(live(work))
}

/// What the children said of their runs.
#[derive(Default)]
struct Heard {
    /// How often each attempt of each job was run to its end.
    runs: HashMap<(u64, u32), usize>,
    done: BTreeSet<u64>,
    lines: usize,
}

fn start(queue: &QueueConfig, heard: &Arc<Mutex<Heard>>) -> Process {
    let heard = heard.clone();
    Process::start(QUEUE, &queue.name, move |line| {
        let words: Vec<_> = line.split(' ').collect();
        let [number, attempt, done] = words[..] else {
            return;
        };
        let run = (number.parse().unwrap(), attempt.parse().unwrap());
        let mut heard = heard.lock().unwrap();
        *heard.runs.entry(run).or_default() += 1;
        heard.lines += 1;
        if done == "true" {
            heard.done.insert(run.0);
        }
    })
}

pub async fn jobs_of_a_killed_process_run_elsewhere_and_none_is_missing(broker: Broker) {
    let backend = broker.backend().await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let (jobs, kills) = if is_long() { (2000, 100) } else { (300, 10) };
    let heard = Arc::<Mutex<Heard>>::default();

    for number in 0..jobs {
        let job = envelope(&queue, number);
        backend.publish(&job, None).await.unwrap();
    }
    for _ in 0..kills {
        let before = heard.lock().unwrap().lines;
        let _child = start(&queue, &heard);
        until("work of the child", async || {
            heard.lock().unwrap().lines > before
        })
        .await;
        pause(Duration::from_millis(fastrand::u64(0..300))).await;
    }
    let _child = start(&queue, &heard);
    until("every job done", async || {
        heard.lock().unwrap().done.len() as u64 == jobs
    })
    .await;
    until("an empty queue", async || {
        let columns = ["messages"];
        broker.listed(&queue.name, &columns) == Some(vec!["0".into()])
    })
    .await;

    let heard = heard.lock().unwrap();
    let again: usize = heard.runs.values().map(|runs| runs - 1).sum();
    eprintln!(
        "    {jobs} stored, {kills} kills; {} runs, {again} again",
        heard.lines
    );
    // What a process has in hand when it is killed; a retry stored and not acked multiplies.
    let in_hand = kills * usize::from(queue.prefetch) * ATTEMPTS as usize;
    assert!(again <= in_hand, "{again} again");
}
