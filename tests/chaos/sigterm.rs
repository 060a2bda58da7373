//! SIGTERM for a worker in a process of its own, as an orchestrator sends it: with a SIGKILL to follow.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use async_channel::Receiver;
use async_global_executor::block_on;
use queuey_rabbitmq::{Backend, Error, QueueConfig, RabbitMqBackend, prelude::*};

use crate::support::{Broker, amqp_url, jobs::*, pause, until, within};

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
    let end: Result<Report, Error> = block_on(work);
    eprintln!("    the child ends: {end:?}");
    Some(end.map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS))
}

struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(queue: &QueueConfig) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .env(QUEUE, &queue.name)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = async_channel::unbounded();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = said.try_send(line);
            }
        });
        Self { child, lines }
    }

    async fn line(&self) -> String {
        within("a line", self.lines.recv()).await.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let mut process = Process::start(&queue);
    // They start beside each other.
    let mut started = [process.line().await, process.line().await];
    started.sort_unstable();
    assert_eq!(started, [format!("start {short}"), format!("start {long}")]);

    let kill = format!("kill -s TERM {}", process.child.id());
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
    assert_eq!(process.line().await, format!("end {short}"));
    within("the end", async {
        while process.child.try_wait().unwrap().is_none() {
            pause(10 * MS).await;
        }
    })
    .await;
    assert!(told.elapsed() < KILL, "{:?}", told.elapsed());
    assert!(process.child.wait().unwrap().success());
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let mut left = ack_numbers(&mut deliveries, 3).await;
    left.sort_unstable();
    assert_eq!(left, [1, 1, long]);
    nothing(&mut deliveries).await;
}
