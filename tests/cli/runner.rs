//! Running `queuey run`, and what its programs leave behind.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use queuey_rabbitmq::{Backend, Envelope, Failure, QueueConfig, Uuid, codec};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::value::RawValue;

use crate::{
    support::{Broker, pause, within},
    tool::command,
};

/// Like the other, with a closure that may borrow.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    within(what, async {
        while !holds().await {
            pause(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// A folder of the test's own.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("queuey-run-{}", Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    pub async fn has(&self, name: &str) {
        until(name, async || !self.read(name).is_empty()).await;
    }

    /// The process whose number is in this file.
    pub fn process(&self, name: &str) -> Pid {
        Pid::from_raw(self.read(name).trim().parse().unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program as a service: what it runs is a shell script in a folder.
pub struct Runner {
    pub child: Child,
    printed: [Arc<Mutex<String>>; 2],
}

impl Runner {
    pub fn start(
        broker: &Broker,
        queue: &QueueConfig,
        options: &[&str],
        script: &str,
    ) -> (Self, Folder) {
        Self::start_with(broker, queue, options, script, &[])
    }

    pub fn start_with(
        broker: &Broker,
        queue: &QueueConfig,
        options: &[&str],
        script: &str,
        environment: &[(&str, &str)],
    ) -> (Self, Folder) {
        let folder = Folder::new();
        let rest = ["--exec", "sh", "-c", script];
        let arguments = [&["run", &queue.name], options, &rest].concat();
        let mut child = command(broker, &arguments)
            .current_dir(&folder.0)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = gather(child.stdout.take().unwrap());
        let stderr = gather(child.stderr.take().unwrap());
        let printed = [stdout, stderr];
        (Self { child, printed }, folder)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the runner", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    /// Ends it as systemd does.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert!(status.success(), "{status}: {}", self.stderr());
    }

    pub fn stdout(&self) -> String {
        self.printed[0].lock().unwrap().clone()
    }

    pub fn stderr(&self) -> String {
        self.printed[1].lock().unwrap().clone()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn gather(from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let all = Arc::new(Mutex::new(String::new()));
    let printed = all.clone();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            *printed.lock().unwrap() += &format!("{line}\n");
        }
    });
    all
}

pub async fn enqueue(
    broker: &Broker,
    queue: &QueueConfig,
    job_type: &str,
    payload: &str,
) -> Envelope {
    let payload = RawValue::from_string(payload.into()).unwrap();
    let job = Envelope::raw(job_type, &queue.name, payload);
    publish(broker, &job).await;
    job
}

pub async fn publish(broker: &Broker, job: &Envelope) {
    broker.backend().await.publish(job, None).await.unwrap();
}

/// The next dead letter of `queue`, and how it failed.
pub async fn dead(broker: &Broker, queue: &QueueConfig) -> (Envelope, String, Failure) {
    let name = format!("{}.dead", queue.name);
    let mut letter = None;
    until("a dead letter", async || {
        letter = broker.take(&name).await;
        letter.is_some()
    })
    .await;
    let letter = letter.unwrap();
    let reason = letter.header(codec::DEATH_REASON).unwrap();
    let failure = codec::failure(&letter.properties).unwrap();
    (letter.envelope(), reason, failure)
}

/// What lies on `queue` once its runner has ended.
pub async fn left(broker: &Broker, queue: &QueueConfig) -> (Option<u32>, Option<u32>) {
    let dead = format!("{}.dead", queue.name);
    (broker.ready(&queue.name).await, broker.ready(&dead).await)
}

/// Whether there is such a process. One that has ended and that nobody has asked about is none.
pub fn lives(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
