//! Runtimes that block, end or change under a connection.

use std::{
    thread,
    time::{Duration, Instant},
};

use futures_lite::{StreamExt, future};
use queuey_rabbitmq::{Counts, QueueConfig, RabbitMqDelivery, WorkerBuilder, prelude::*};

use crate::support::{Broker, On, jobs::envelope, pause, until, within};

/// Longer than a broker waits for a client that has promised a heartbeat every second or two.
const TOO_LONG: Duration = Duration::from_secs(7);

/// The only job of this file, on a queue whose name is made at run time.
#[derive(Debug, Serialize, Deserialize)]
struct Task(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Named(&'static str);

impl QueueSet for Named {
    fn all() -> &'static [Self] {
        &[]
    }

    fn name(&self) -> &'static str {
        self.0
    }

    fn config(&self) -> QueueConfig {
        QueueConfig::new(self.0)
    }
}

impl Job for Task {
    type Queue = Named;
    const NAME: &'static str = "number";
    const QUEUE: Named = Named("any");
}

/// Runs `work` on a thread where no executor is.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    within("another thread", blocking::unblock(work)).await
}

fn tokio_current_thread() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

async fn with_a_job(backend: &RabbitMqBackend, queue: &QueueConfig) {
    backend.declare(std::slice::from_ref(queue)).await.unwrap();
    backend.publish(&envelope(queue, 1), None).await.unwrap();
}

fn worker(backend: RabbitMqBackend, queue: &QueueConfig) -> WorkerBuilder<Named, RabbitMqBackend> {
    Worker::builder(backend).queues(&[Named(queue.name.clone().leak())])
}

async fn run_until(
    builder: WorkerBuilder<Named, RabbitMqBackend>,
    done: impl Fn(Counts) -> bool,
) -> Counts {
    let worker = builder.build().await.unwrap();
    let handle = worker.handle();
    let stop = async {
        until("the jobs' end", async || done(handle.counts())).await;
        handle.shutdown();
    };
    let (report, ()) = within("the worker's end", future::zip(worker.run(), stop)).await;
    report.unwrap().counts
}

/// A handler that holds its thread for so long, on an executor with no other thread.
async fn survives_a_blocking_handler(url: String, queue: QueueConfig, runtime: Runtime) {
    let options = RabbitMqOptions::new().runtime(runtime);
    let backend = RabbitMqBackend::with_options(format!("{url}?heartbeat=2"), options);
    let backend = backend.await.unwrap();
    with_a_job(&backend, &queue).await;

    let builder =
        worker(backend.clone(), &queue).handler_fn(|Task(_), ctx: JobContext| async move {
            assert!(!ctx.redelivered);
            thread::sleep(TOO_LONG);
            Ok(())
        });
    let counts = run_until(builder, |counts| counts.succeeded == 1).await;

    assert_eq!(counts.settle_failures, 0);
    assert!(backend.is_connected());
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    backend.close().await.unwrap();
}

pub async fn a_handler_may_block_the_only_thread_of_smol(broker: Broker) {
    let (url, queue) = (broker.url.clone(), broker.queue());
    let name = queue.name.clone();

    elsewhere(move || {
        smol::block_on(survives_a_blocking_handler(url, queue, Runtime::smol()));
    })
    .await;

    assert_eq!(broker.ready(&name).await, Some(1), "the second job alone");
}

pub async fn a_handler_may_block_a_tokio_of_one_thread(broker: Broker) {
    let (url, queue) = (broker.url.clone(), broker.queue());
    let name = queue.name.clone();

    elsewhere(move || {
        tokio_current_thread()
            .block_on(async { survives_a_blocking_handler(url, queue, Runtime::tokio()).await });
    })
    .await;

    assert_eq!(broker.ready(&name).await, Some(1), "the second job alone");
}

pub async fn a_handler_may_block_on_a_publish(broker: Broker) {
    for on in On::ALL {
        let (url, queue) = (broker.url.clone(), broker.queue());

        elsewhere(move || {
            on.block_on(async {
                let options = RabbitMqOptions::new().runtime(on.runtime());
                let backend = RabbitMqBackend::with_options(url, options).await.unwrap();
                with_a_job(&backend, &queue).await;
                let (again, to) = (backend.clone(), queue.clone());
                let builder =
                    worker(backend.clone(), &queue).handler_fn(move |Task(_), ctx: JobContext| {
                        let (again, to) = (again.clone(), to.clone());
                        async move {
                            if ctx.correlation_id.is_none() {
                                let mut envelope = envelope(&to, 1);
                                envelope.correlation_id = Some("again".into());
                                future::block_on(again.publish(&envelope, None))?;
                            }
                            Ok(())
                        }
                    });
                let counts = run_until(builder, |counts| counts.succeeded == 2).await;
                assert_eq!(counts.settle_failures, 0, "{on:?}");
                backend.close().await.unwrap();
            });
        })
        .await;
    }
}

pub async fn a_backend_outlives_the_tokio_it_was_made_on(broker: Broker) {
    let (url, queue) = (broker.url.clone(), broker.queue());
    let name = queue.name.clone();

    elsewhere(move || {
        let first = tokio::runtime::Runtime::new().unwrap();
        let producer = first.block_on(async {
            let backend = RabbitMqBackend::connect(url).await.unwrap();
            with_a_job(&backend, &queue).await;
            Producer::<Named, _>::new_undeclared(backend)
        });
        drop(first);
        let backend = producer.backend().clone();
        let job = envelope(&queue, 1);
        tokio_current_thread()
            .block_on(backend.publish(&job, None))
            .unwrap();
        smol::block_on(backend.publish(&job, None)).unwrap();
        let second = tokio::runtime::Runtime::new().unwrap();
        second.block_on(async {
            let builder = worker(backend.clone(), &queue).handler_fn(|Task(_), _| async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(())
            });
            run_until(builder, |counts| counts.succeeded == 3).await;
            backend.close().await.unwrap();
        });
    })
    .await;

    assert_eq!(broker.ready(&name).await, Some(0));
}

pub async fn a_backend_lives_on_between_two_short_runs_of_an_executor(broker: Broker) {
    let (url, queue) = (format!("{}?heartbeat=1", broker.url), broker.queue());

    elsewhere(move || {
        let backend = future::block_on(RabbitMqBackend::connect(url)).unwrap();
        smol::block_on(with_a_job(&backend, &queue));
        let mut deliveries =
            tokio_current_thread().block_on(async { backend.consume(&queue).await.unwrap() });

        // Nothing of ours runs now.
        thread::sleep(TOO_LONG);

        assert!(backend.is_connected());
        let delivery = smol::block_on(deliveries.next()).unwrap().unwrap();
        assert!(!delivery.redelivered());
        future::block_on(delivery.ack()).unwrap();
        tokio_current_thread()
            .block_on(backend.publish(&envelope(&queue, 1), None))
            .unwrap();
        async_std::task::block_on(backend.close()).unwrap();
    })
    .await;
}

pub async fn handlers_run_on_tokio_for_a_smol_application(broker: Broker) {
    let (url, queue) = (broker.url.clone(), broker.queue());

    elsewhere(move || {
        let tokio = tokio::runtime::Runtime::new().unwrap();
        smol::block_on(async {
            let backend = RabbitMqBackend::connect(url).await.unwrap();
            with_a_job(&backend, &queue).await;
            let builder = worker(backend.clone(), &queue)
                .runtime(Runtime::tokio_handle(tokio.handle().clone()))
                .handler_fn(|Task(_), _| async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    tokio::spawn(async {}).await?;
                    Ok(())
                });
            run_until(builder, |counts| counts.succeeded == 1).await;
            backend.close().await.unwrap();
        });
    })
    .await;
}

pub async fn handles_may_be_dropped_in_any_order(broker: Broker) {
    let queue = broker.queue();
    let backend = broker.backend().await;
    with_a_job(&backend, &queue).await;
    let mut deliveries = backend.consume(&queue).await.unwrap();

    drop(backend);
    let delivery: RabbitMqDelivery = within("a job", deliveries.next()).await.unwrap().unwrap();
    drop(deliveries);
    delivery.ack().await.unwrap();

    until("the end of the connection", async || {
        broker.ready(&queue.name).await == Some(0)
    })
    .await;
}

pub async fn a_worker_may_be_built_here_and_run_there(broker: Broker) {
    let queue = broker.queue();
    let backend = broker.backend().await;
    with_a_job(&backend, &queue).await;
    let builder = worker(backend, &queue).handler_fn(|Task(_), _| async { Ok(()) });
    let built = Instant::now();
    let worker = builder.build().await.unwrap();
    let handle = worker.handle();

    let run = thread::spawn(|| smol::block_on(worker.run()));
    until("the job's end", async || handle.counts().succeeded == 1).await;
    handle.shutdown();
    while !run.is_finished() {
        assert!(built.elapsed() < TOO_LONG * 4);
        pause(Duration::from_millis(5)).await;
    }

    assert_eq!(run.join().unwrap().unwrap().counts.succeeded, 1);
}
