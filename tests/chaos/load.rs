//! [`Load`]: jobs that are counted from the enqueue to the end of their last run.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    future::Future,
    pin::pin,
    process::Command,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_lite::future::{or, zip};
use futures_util::future::join_all;
use queuey_rabbitmq::{
    Backend, Counts, JobContext, JobError, QueueConfig, RabbitMqBackend, Result, Worker,
    WorkerBuilder,
};

use crate::support::{Broker, jobs::*, pause, until, within};

/// Who enqueues at the same time in [`Load::enqueue_during`].
pub const CALLERS: usize = 8;

pub type Builder = WorkerBuilder<Named, RabbitMqBackend>;

/// The jobs of one test and what became of them. Clones are the same jobs.
#[derive(Clone)]
pub struct Load {
    pub queue: QueueConfig,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    next: u64,
    /// Their enqueue said yes.
    stored: BTreeSet<u64>,
    /// What the other enqueues said.
    refusals: Vec<String>,
    /// When each attempt of each job was run.
    runs: BTreeMap<(u64, u32), Vec<Instant>>,
    /// Their handler said yes.
    done: BTreeSet<u64>,
}

impl Load {
    /// No jobs yet, and their queue declared.
    pub async fn on(backend: &RabbitMqBackend, queue: QueueConfig) -> Self {
        backend.declare(std::slice::from_ref(&queue)).await.unwrap();
        Self {
            queue,
            books: Arc::default(),
        }
    }

    /// Enqueues the next job; answers its number.
    pub async fn enqueue(&self, backend: &RabbitMqBackend) -> Result<u64> {
        self.enqueue_after(backend, None).await
    }

    /// Enqueues the next job, to run in so long a time; answers its number.
    pub async fn enqueue_after(
        &self,
        backend: &RabbitMqBackend,
        delay: impl Into<Option<Duration>>,
    ) -> Result<u64> {
        let number = {
            let mut books = self.books();
            books.next += 1;
            books.next
        };
        let job = envelope(&self.queue, number);
        let answer = backend.publish(&job, delay.into()).await;
        let mut books = self.books();
        match &answer {
            Ok(()) => drop(books.stored.insert(number)),
            Err(error) => books.refusals.push(error.to_string()),
        }
        answer.map(|()| number)
    }

    /// Enqueues `count` jobs at once; each must be stored.
    pub async fn enqueue_many(&self, backend: &RabbitMqBackend, count: usize) {
        for answer in join_all((0..count).map(|_| self.enqueue(backend))).await {
            answer.unwrap();
        }
    }

    /// Enqueues jobs from [`CALLERS`] callers, each with a rest after each job, during `script`.
    pub async fn enqueue_during<T>(
        &self,
        backend: &RabbitMqBackend,
        rest: Duration,
        script: impl Future<Output = T>,
    ) -> T {
        let over = AtomicBool::new(false);
        let callers = join_all((0..CALLERS).map(|_| async {
            while !over.load(Ordering::Relaxed) {
                let _ = self.enqueue(backend).await;
                pause(rest).await;
            }
        }));
        let script = async {
            let answer = script.await;
            over.store(true, Ordering::Relaxed);
            answer
        };
        zip(script, callers).await.0
    }

    /// A worker that runs these jobs, each for `time`.
    pub fn worker(&self, backend: &RabbitMqBackend, time: Duration) -> Builder {
        self.worker_with(backend, move |_| async move {
            pause(time).await;
            Ok(())
        })
    }

    /// A worker that runs these jobs with `run`.
    pub fn worker_with<F, R>(&self, backend: &RabbitMqBackend, run: F) -> Builder
    where
        F: Fn(JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        let load = self.clone();
        Worker::builder(backend.clone())
            .queues(&[named(&self.queue)])
            .handler_fn(move |Number(number), context: JobContext| {
                let (load, now) = (load.clone(), Instant::now());
                let run_of = (number, context.attempt);
                load.books().runs.entry(run_of).or_default().push(now);
                let run = run(context);
                async move {
                    run.await?;
                    load.books().done.insert(number);
                    Ok(())
                }
            })
    }

    /// When the runs of this attempt of job `number` began.
    pub fn runs_of(&self, number: u64, attempt: u32) -> Vec<Instant> {
        let books = self.books();
        books
            .runs
            .get(&(number, attempt))
            .cloned()
            .unwrap_or_default()
    }

    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.books().runs.values().map(Vec::len).sum()
    }

    /// How many jobs the handler has said yes to.
    pub fn done(&self) -> usize {
        self.books().done.len()
    }

    pub fn stored(&self) -> usize {
        self.books().stored.len()
    }

    /// What enqueues answered that did not store their jobs.
    pub fn refusals(&self) -> Vec<String> {
        self.books().refusals.clone()
    }

    pub async fn until_runs(&self, count: usize) {
        let what = format!("{count} runs");
        until(&what, async || self.runs() >= count).await;
    }

    /// Waits until the broker has none of these jobs any more, acked or not.
    pub async fn until_empty(&self, broker: &Broker) {
        let empty = format!("{}\t0", self.queue.name);
        until("an empty queue", async || {
            let listed = broker.ctl_beside(&["list_queues", "name", "messages"]);
            listed.await.lines().any(|line| line == empty)
        })
        .await;
    }

    /// Waits until the handler has said yes to every job whose enqueue has.
    pub async fn until_done(&self) {
        let missing = || {
            let books = self.books();
            books.stored.difference(&books.done).count()
        };
        let mut last = (missing(), Instant::now());
        // The deadline is for progress.
        while last.0 > 0 {
            if last.1.elapsed() >= PATIENCE {
                panic!("{} jobs are lost; the broker has\n{}", last.0, held());
            }
            pause(10 * MS).await;
            let now = missing();
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
    }

    /// Says what became of the jobs; answers how many runs were repeats, those to come included.
    pub async fn account(&self, broker: &Broker, counts: Counts) -> usize {
        let left = broker.ready(&self.queue.name).await.unwrap_or(0) as usize;
        let dead = broker.ready(&format!("{}.dead", self.queue.name)).await;
        let books = self.books();
        let lost = books.stored.difference(&books.done).count();
        let again: usize = books.runs.values().map(|runs| runs.len() - 1).sum();
        let runs: usize = books.runs.values().map(Vec::len).sum();
        eprintln!(
            "    {} stored, {} refused; {runs} runs, {again} again, {left} to come again; {} acked, \
             {} retried, {} dead, {} not settled; {lost} lost",
            books.stored.len(),
            books.refusals.len(),
            counts.succeeded,
            counts.retried,
            counts.dead_lettered,
            counts.settle_failures,
        );
        assert_eq!(lost, 0, "jobs are lost");
        assert!(dead.is_none_or(|dead| u64::from(dead) >= counts.dead_lettered));
        again + left
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }
}

/// The queues of the broker, where it can be asked.
fn held() -> String {
    let Some(ctl) = env::var_os("RABBITMQCTL") else {
        return "nobody knows what".into();
    };
    let columns = "name state messages_ready messages_unacknowledged consumers arguments";
    let listed = Command::new(ctl)
        .args(["--silent", "list_queues"])
        .args(columns.split(' '))
        .output();
    String::from_utf8_lossy(&listed.unwrap().stdout).into()
}

/// How long nothing may happen at all: a reconnect may have a long pause before it.
const PATIENCE: Duration = Duration::from_secs(45);

/// Runs `worker` during `script`, then shuts it down. It must not end before.
pub async fn beside(
    worker: Worker<Named, RabbitMqBackend>,
    script: impl Future<Output = ()>,
) -> Counts {
    let handle = worker.handle();
    let mut run = pin!(worker.run());
    let early = async {
        let end = run.as_mut().await;
        panic!("the worker ends by itself: {end:?}");
    };
    or(script, early).await;
    handle.shutdown();
    let report = within("the end of the worker", run).await;
    report.unwrap().counts
}
