//! The executor as a value: every one of them, and what they do to each other. Needs no broker.

use std::{
    future::{Future, pending},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use futures_lite::future;
use queuey_rabbitmq::{Chain, Counts, WorkerBuilder, prelude::*};

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    Main,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Main, retry(max_attempts = 1))]
struct Task;

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

/// Runs `test` with each runtime, driven as its users drive it and from elsewhere.
fn on_each<F: Future<Output = ()>>(test: impl Fn(Runtime) -> F) {
    let tokio = tokio_runtime();
    let on_tokio = || Runtime::tokio_handle(tokio.handle().clone());
    async_global_executor::block_on(test(Runtime::async_global_executor()));
    async_std::task::block_on(test(Runtime::default()));
    smol::block_on(test(Runtime::smol()));
    tokio.block_on(async { test(Runtime::tokio()).await });
    smol::block_on(test(on_tokio()));
    future::block_on(test(on_tokio()));
    tokio.block_on(test(Runtime::smol()));
    current_thread().block_on(async { test(Runtime::tokio()).await });
}

fn current_thread() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    let late = async {
        async_io::Timer::after(Duration::from_secs(20)).await;
        panic!("nothing came in 20 s");
    };
    future::or(work, late).await
}

/// Runs the worker until `done` of its counts.
async fn run_until<B: Backend>(
    builder: WorkerBuilder<Queue, B>,
    done: impl Fn(Counts) -> bool,
) -> Counts {
    let worker = builder.build().await.unwrap();
    let handle = worker.handle();
    let stop = async {
        while !done(handle.counts()) {
            async_io::Timer::after(MS).await;
        }
        handle.shutdown();
    };
    let (report, ()) = within(future::zip(worker.run(), stop)).await;
    report.unwrap().counts
}

#[test]
fn a_delay_is_never_shorter_than_asked() {
    on_each(|runtime| async {
        let backend = MemoryBackend::with_runtime(runtime);
        let producer = Producer::<Queue, _>::new(backend.clone()).await.unwrap();
        let enqueued = Instant::now();
        producer.enqueue_after(&Task, 30 * MS).await.unwrap();

        let ran = Arc::new(Mutex::new(None));
        let seen = ran.clone();
        let worker = Worker::builder(backend).handler_fn(move |_: Task, _| {
            *seen.lock().unwrap() = Some(enqueued.elapsed());
            async { Ok(()) }
        });
        run_until(worker, |counts| counts.succeeded == 1).await;

        assert!(ran.lock().unwrap().unwrap() >= 30 * MS);
    });
}

#[test]
fn a_job_that_never_ends_is_dropped_at_its_time_limit() {
    on_each(|runtime| async {
        let backend = MemoryBackend::with_runtime(runtime.clone());
        let producer = Producer::<Queue, _>::new(backend.clone()).await.unwrap();
        producer.enqueue(&Task).await.unwrap();
        let (alive, dropped) = async_channel::bounded::<()>(1);

        let started = Instant::now();
        let worker = Worker::builder(backend.clone())
            .runtime(runtime)
            .job_timeout(30 * MS)
            .handler_fn(move |_: Task, _| {
                let alive = alive.clone();
                async move {
                    let _alive = alive;
                    pending::<()>().await;
                    Ok(())
                }
            });
        let counts = run_until(worker, |counts| counts.dead_lettered == 1).await;

        assert!(started.elapsed() >= 30 * MS);
        assert_eq!(counts.succeeded, 0);
        within(dropped.recv()).await.unwrap_err();
        let (_, reason) = &backend.dead_letters("main")[0];
        assert!(reason.contains("30ms"), "{reason}");
    });
}

/// Where a handler finds itself: inside tokio or not, and on whose thread.
async fn surroundings(builder: WorkerBuilder<Queue, MemoryBackend>) -> (bool, String) {
    let (sender, seen) = async_channel::bounded(1);
    let worker = builder.handler_fn(move |_: Task, _| {
        let tokio = tokio::runtime::Handle::try_current().is_ok();
        let thread = thread::current().name().unwrap_or_default().to_owned();
        sender.try_send((tokio, thread)).unwrap();
        async { Ok(()) }
    });
    run_until(worker, |counts| counts.succeeded == 1).await;
    seen.recv().await.unwrap()
}

async fn worker_with_a_job() -> WorkerBuilder<Queue, MemoryBackend> {
    let backend = MemoryBackend::new();
    let producer = Producer::<Queue, _>::new(backend.clone()).await.unwrap();
    producer.enqueue(&Task).await.unwrap();
    Worker::builder(backend)
}

#[test]
fn the_default_inside_tokio_is_that_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("mine")
        .build()
        .unwrap();

    let found = runtime.block_on(async { surroundings(worker_with_a_job().await).await });

    assert_eq!(found, (true, "mine".into()));
}

#[test]
fn the_default_elsewhere_is_async_global_executor() {
    for (tokio, thread) in [
        future::block_on(async { surroundings(worker_with_a_job().await).await }),
        smol::block_on(async { surroundings(worker_with_a_job().await).await }),
        async_std::task::block_on(async { surroundings(worker_with_a_job().await).await }),
    ] {
        assert!(!tokio);
        assert!(thread.starts_with("async-global-executor"), "{thread}");
    }
}

#[test]
fn handlers_run_on_tokio_for_a_smol_application() {
    let tokio = tokio_runtime();

    let counts = smol::block_on(async {
        let worker = worker_with_a_job()
            .await
            .runtime(Runtime::tokio_handle(tokio.handle().clone()))
            .handler_fn(|_: Task, _| async {
                tokio::time::sleep(MS).await;
                tokio::spawn(async {}).await?;
                Ok(())
            });
        run_until(worker, |counts| counts.succeeded == 1).await
    });

    assert_eq!(counts.dead_lettered, 0);
}

#[test]
fn a_handler_may_block_on_a_future() {
    on_each(|runtime| async {
        let backend = MemoryBackend::with_runtime(runtime.clone());
        let producer = Producer::<Queue, _>::new(backend.clone()).await.unwrap();
        producer.enqueue(&Task).await.unwrap();

        let again = producer.clone();
        let worker = Worker::builder(backend).runtime(runtime).handler_fn(
            move |_: Task, ctx: JobContext| {
                let again = again.clone();
                async move {
                    if ctx.correlation_id.is_none() {
                        let options = EnqueueOptions::now().correlation_id("again");
                        future::block_on(again.enqueue_with(&Task, options))?;
                    }
                    Ok(())
                }
            },
        );
        let counts = run_until(worker, |counts| counts.succeeded == 2).await;

        assert_eq!(counts.settle_failures, 0);
    });
}

/// As in `tokio::runtime::Runtime::new()?.handle().clone()`.
#[test]
fn a_tokio_runtime_that_is_gone_ends_the_worker() {
    let gone = tokio_runtime().handle().clone();
    let backend = MemoryBackend::new();

    let ended = future::block_on(async {
        let producer = Producer::<Queue, _>::new(backend.clone()).await.unwrap();
        producer.enqueue(&Task).await.unwrap();
        let worker = Worker::<Queue, _>::builder(backend.clone())
            .runtime(Runtime::tokio_handle(gone))
            .handler_fn(|_: Task, _| async { Ok(()) })
            .build()
            .await
            .unwrap();
        within(worker.run()).await
    });

    let text = Chain(&ended.unwrap_err()).to_string();
    assert_eq!(
        text,
        "cannot run jobs on `tokio`: its runtime has shut down"
    );
    assert_eq!(backend.pending("main").len(), 1, "the job is back");
}

#[test]
fn a_producer_outlives_the_runtime_it_was_made_on() {
    let first = tokio_runtime();
    let producer = first.block_on(async {
        let backend = MemoryBackend::with_manual_clock();
        Producer::<Queue, _>::new(backend).await.unwrap()
    });
    drop(first);

    tokio_runtime()
        .block_on(producer.enqueue_after(&Task, MS))
        .unwrap();
    smol::block_on(producer.enqueue(&Task)).unwrap();

    assert_eq!(producer.backend().pending("main").len(), 1);
}
