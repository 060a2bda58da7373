//! Retries that cannot be stored, for the broker takes no publishes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_channel::{Receiver, Sender};
use futures_lite::{StreamExt, future::or};
use queuey_rabbitmq::{Backend, QueueConfig, RabbitMqBackend, RabbitMqOptions, prelude::*};

use crate::{
    alarms::out_of_memory,
    load::{Builder, beside},
    support::{Broker, jobs::*, pause, until, within},
};

/// The jobs below this number fail at their first attempt.
const BAD: u64 = 10;

const RETRY: Duration = Duration::from_secs(1);

struct Stage {
    backend: RabbitMqBackend,
    queue: QueueConfig,
    /// How often each attempt of each job was run.
    runs: Arc<Mutex<BTreeMap<(u64, u32), usize>>>,
    gate: (Sender<()>, Receiver<()>),
}

impl Stage {
    /// As many jobs on a queue, those that fail first.
    async fn new(broker: &Broker, prefetch: u16, jobs: u64) -> Self {
        let options = RabbitMqOptions::new().publish_timeout(2000 * MS);
        let backend = broker.backend_with(options).await;
        let queue = broker.queue().prefetch(prefetch);
        backend.declare(std::slice::from_ref(&queue)).await.unwrap();
        for number in 0..jobs {
            let job = envelope(&queue, number);
            backend.publish(&job, None).await.unwrap();
        }
        Self {
            backend,
            queue,
            runs: Arc::default(),
            gate: async_channel::bounded(1),
        }
    }

    /// Its jobs wait for the gate.
    fn worker(&self) -> Builder {
        let (runs, gate) = (self.runs.clone(), self.gate.1.clone());
        Worker::builder(self.backend.clone())
            .queues(&[named(&self.queue)])
            .job_retry_override::<Number>(RetryPolicy::fixed(3, RETRY))
            .handler_fn(move |Number(number), ctx: JobContext| {
                let run = (number, ctx.attempt);
                *runs.lock().unwrap().entry(run).or_default() += 1;
                let gate = gate.clone();
                async move {
                    let _closed = gate.recv().await;
                    match run {
                        (..BAD, 1) => Err(JobError::retryable("not yet")),
                        _ => Ok(()),
                    }
                }
            })
    }

    /// Keeps the hold of the retries in use, with jobs that are done at once.
    async fn keep_holding<T>(&self) -> T {
        loop {
            let job = envelope(&self.queue, fastrand::u64(1000..));
            let _ = self.backend.publish(&job, Some(RETRY)).await;
            pause(200 * MS).await;
        }
    }

    /// How many attempts have been run of the jobs that were there from the start.
    fn started(&self) -> usize {
        self.runs.lock().unwrap().range(..(1000, 0)).count()
    }

    /// The attempts that were run more than once.
    fn again(&self) -> BTreeMap<(u64, u32), usize> {
        let mut again = self.runs.lock().unwrap().clone();
        again.retain(|_, times| *times > 1);
        again
    }
}

pub async fn retries_wait_for_the_end_of_an_alarm_and_other_jobs_go_on(broker: Broker) {
    let good = 40;
    let stage = Stage::new(&broker, 16, BAD + good).await;
    let worker = stage.worker().build().await.unwrap();
    let handle = worker.handle();
    let counts = beside(worker, async {
        until("some runs", async || stage.started() > 0).await;
        let blocked = async {
            let alarm = out_of_memory(&broker).await;
            // A broker says so when it is sent something to store. What that was, it may store.
            until("a word of it", async || stage.backend.is_blocked()).await;
            alarm
        };
        let alarm = or(blocked, stage.keep_holding()).await;
        stage.gate.0.close();

        until("the good jobs", async || {
            handle.counts().succeeded >= good && stage.started() as u64 == BAD + good
        })
        .await;
        // Each retry is refused, and tried again.
        until("refusals", async || handle.settle_failures() > 2 * BAD).await;
        assert_eq!(handle.counts().retried, 0);
        assert!(stage.again().is_empty(), "{:?}", stage.again());

        alarm.now().await;
        until("an empty queue", async || {
            broker.listed(&stage.queue.name, &["messages"]) == Some(vec!["0".into()])
                && stage.started() as u64 == 2 * BAD + good
        })
        .await;
    })
    .await;

    eprintln!("    {counts:?}; {:?} again", stage.again());
    assert!(stage.again().is_empty(), "{:?}", stage.again());
    assert_eq!(counts.retried, BAD);
}

pub async fn a_shutdown_gives_back_what_waits_for_its_retry(broker: Broker) {
    let prefetch = 4;
    let stage = Stage::new(&broker, prefetch, BAD).await;
    let builder = stage.worker().shutdown_deadline(3000 * MS);
    let worker = builder.build().await.unwrap();
    let handle = worker.handle();
    let mut alarm = None;
    let counts = beside(worker, async {
        until("a full prefetch", async || {
            stage.started() == usize::from(prefetch)
        })
        .await;
        alarm = Some(out_of_memory(&broker).await);
        stage.gate.0.close();
        until("refusals", async || {
            handle.settle_failures() >= u64::from(prefetch)
        })
        .await;
        handle.shutdown();
    });
    let start = Instant::now();
    let counts = within("the end of the worker", counts).await;
    eprintln!("    {counts:?} after {:?}", start.elapsed());

    // It started no others, and none is lost.
    assert_eq!(stage.started(), usize::from(prefetch));
    until("all jobs back", async || {
        broker.listed(&stage.queue.name, &["messages_ready"]) == Some(vec![BAD.to_string()])
    })
    .await;
    alarm.unwrap().now().await;
    let worker = stage.worker();
    run_until(worker, "the jobs", |counts| counts.succeeded >= BAD).await;
    let done = stage
        .runs
        .lock()
        .unwrap()
        .keys()
        .filter(|run| run.1 == 2)
        .count();
    assert_eq!(done as u64, BAD);
}

pub async fn what_a_worker_gave_back_runs_under_an_alarm(broker: Broker) {
    let good = 20;
    let stage = Stage::new(&broker, 64, BAD + good).await;
    let mut deliveries = stage.backend.consume(&stage.queue).await.unwrap();
    let mut in_hand = vec![];
    for _ in 0..BAD + good {
        in_hand.push(deliveries.next().await.unwrap().unwrap());
    }
    let _alarm = out_of_memory(&broker).await;
    drop((deliveries, in_hand));
    stage.gate.0.close();

    // It hears of the alarm when it tells that they come for a second time.
    let worker = stage.worker();
    run_until(worker, "the good jobs", |counts| counts.succeeded >= good).await;

    assert!(stage.again().is_empty(), "{:?}", stage.again());
}
