//! SIGTERM for a worker in a process of its own, as an orchestrator sends it: with a SIGKILL to follow.

use std::{
    env,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use queuey_rabbitmq::{Backend, QueueConfig, RabbitMqBackend, prelude::*};

use crate::{
    process::{Process, live},
    support::{Broker, amqp_url, jobs::*, pause, until, within},
};

const QUEUE: &str = "QUEUEY_CHAOS_SIGTERM";
/// When the SIGKILL comes.
const KILL: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(60);

fn queue(name: &str) -> QueueConfig {
    QueueConfig::new(name).prefetch(4)
}

/// Works on the queue that the environment names, until a signal comes.
pub fn child() -> Option<ExitCode> {
    let queue = queue(&env::var(QUEUE).ok()?);
    let work = async {
        let backend = RabbitMqBackend::connect(amqp_url().unwrap()).await?;
        let worker = Worker::builder(backend)
            .queues(&[named(&queue)])
            .concurrency(2)
            .shutdown_grace(6000 * MS)
            .shutdown_deadline(7000 * MS)
            .close_backend_on_shutdown(true)
            .handler_fn(|Number(seconds), _| async move {
                println!("start {seconds}");
                pause(Duration::from_secs(seconds)).await;
                println!("end {seconds}");
                Ok(())
            })
            .build()
            .await?;
        worker.run_until_signal().await
    };
    Some(live(work))
}

pub async fn short_jobs_end_and_long_ones_are_back_before_the_kill(broker: Broker) {
    let queue = queue(&broker.name());
    let backend = broker.backend().await;
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let (short, long) = (SHORT.as_secs(), LONG.as_secs());
    for seconds in [short, long, 1, 1] {
        let job = envelope(&queue, seconds);
        backend.publish(&job, None).await.unwrap();
    }
    let (said, lines) = async_channel::unbounded();
    let mut process = Process::start(QUEUE, &queue.name, move |line| {
        let _ = said.try_send(line);
    });
    let line = async || within("a line", lines.recv()).await.unwrap();
    // They start beside each other.
    let mut started = [line().await, line().await];
    started.sort_unstable();
    assert_eq!(started, [format!("start {short}"), format!("start {long}")]);

    let kill = format!("kill -s TERM {}", process.0.id());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    let told = Instant::now();

    until("what had not started", async || {
        broker.ready(&queue.name).await == Some(2)
    })
    .await;
    assert!(told.elapsed() < SHORT, "{:?}", told.elapsed());
    assert_eq!(line().await, format!("end {short}"));
    within("the end", async {
        while process.is_alive() {
            pause(10 * MS).await;
        }
    })
    .await;
    assert!(told.elapsed() < KILL, "{:?}", told.elapsed());
    assert!(process.0.wait().unwrap().success());
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let mut left = ack_numbers(&mut deliveries, 3).await;
    left.sort_unstable();
    assert_eq!(left, [1, 1, long]);
    nothing(&mut deliveries).await;
}
