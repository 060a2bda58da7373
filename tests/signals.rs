//! What signals do to a process whose worker runs until one comes.
#![cfg(unix)]

use std::{
    env,
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use queuey_rabbitmq::prelude::*;

/// Set in the process that gets the signals, to how long its job takes, in milliseconds.
const JOB_TAKES: &str = "QUEUEY_TEST_JOB_TAKES";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    Main,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Main, name = "work")]
struct Work;

#[test]
#[ignore = "the process that the other tests start"]
fn worker() {
    let Ok(takes) = env::var(JOB_TAKES) else {
        return;
    };
    let takes = Duration::from_millis(takes.parse().unwrap());
    Runtime::default().block_on(async {
        let backend = MemoryBackend::new();
        let producer = Producer::new(backend.clone()).await.unwrap();
        producer.enqueue(&Work).await.unwrap();
        let worker = Worker::builder(backend.clone())
            .handler_fn(move |_: Work, _| async move {
                println!("started");
                async_io::Timer::after(takes).await;
                Ok(())
            })
            .build()
            .await
            .unwrap();

        let counts = worker.run_until_signal().await.unwrap().counts;

        let (done, dropped) = (counts.succeeded, counts.dropped);
        let back = backend.pending("main").len();
        println!("{done} done, {dropped} dropped, {back} back");
    });
}

/// [`worker`], in a process of its own.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Returns once the job runs.
    fn start(job_takes: Duration) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["worker", "--exact", "--ignored", "--nocapture"])
            .env(JOB_TAKES, job_takes.as_millis().to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self { child, lines };
        process.until_line("started");
        process
    }

    /// The next line that ends like this: the test harness writes before it on the same line.
    fn until_line(&mut self, end: &str) {
        let found = self.lines.by_ref().any(|line| line.unwrap().ends_with(end));
        assert!(found, "the process ended before it wrote `{end}`");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -s {name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.unwrap().success());
    }

    fn ends_well(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_first_signal_lets_the_running_job_end() {
    let takes = Duration::from_secs(1);
    let before = Instant::now();
    let mut process = Process::start(takes);

    process.signal("TERM");

    process.until_line("1 done, 0 dropped, 0 back");
    process.ends_well();
    assert!(before.elapsed() >= takes);
}

#[test]
fn the_second_signal_drops_the_running_job() {
    let mut process = Process::start(Duration::from_secs(3600));

    process.signal("TERM");
    process.signal("INT");

    process.until_line("0 done, 1 dropped, 1 back");
    process.ends_well();
}
