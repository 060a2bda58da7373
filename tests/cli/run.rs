//! `queuey run`.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use queuey_rabbitmq::{Backend, DeadLetterCause, Envelope, Failure, QueueConfig, Uuid, codec};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::value::RawValue;

use crate::{
    relay::Relay,
    support::{Broker, pause, within},
    tool::{command, declared, run, text},
};

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    within(what, async {
        while !holds().await {
            pause(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// A folder of the test's own.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("queuey-run-{}", Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    async fn has(&self, name: &str) {
        until(name, async || !self.read(name).is_empty()).await;
    }

    /// The process whose number is in this file.
    fn process(&self, name: &str) -> Pid {
        Pid::from_raw(self.read(name).trim().parse().unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program as a service: what it runs is a shell script in a folder.
struct Runner {
    child: Child,
    printed: [Arc<Mutex<String>>; 2],
}

impl Runner {
    fn start(
        broker: &Broker,
        queue: &QueueConfig,
        options: &[&str],
        script: &str,
    ) -> (Self, Folder) {
        Self::start_with(broker, queue, options, script, &[])
    }

    fn start_with(
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

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the runner", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    /// Ends it as systemd does.
    async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert!(status.success(), "{status}: {}", self.stderr());
    }

    fn stdout(&self) -> String {
        self.printed[0].lock().unwrap().clone()
    }

    fn stderr(&self) -> String {
        self.printed[1].lock().unwrap().clone()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gather(from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let all = Arc::new(Mutex::new(String::new()));
    let printed = all.clone();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            *printed.lock().unwrap() += &format!("{line}\n");
        }
    });
    all
}

async fn enqueue(broker: &Broker, queue: &QueueConfig, job_type: &str, payload: &str) -> Envelope {
    let payload = RawValue::from_string(payload.into()).unwrap();
    let job = Envelope::raw(job_type, &queue.name, payload);
    publish(broker, &job).await;
    job
}

async fn publish(broker: &Broker, job: &Envelope) {
    broker.backend().await.publish(job, None).await.unwrap();
}

/// The next dead letter of `queue`, and how it failed.
async fn dead(broker: &Broker, queue: &QueueConfig) -> (Envelope, String, Failure) {
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
async fn left(broker: &Broker, queue: &QueueConfig) -> (Option<u32>, Option<u32>) {
    let dead = format!("{}.dead", queue.name);
    (broker.ready(&queue.name).await, broker.ready(&dead).await)
}

/// Whether there is such a process. One that has ended and that nobody has asked about is none.
fn lives(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

pub async fn each_end_of_a_program_has_its_outcome(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo x >>runs; case $QUEUEY_JOB_TYPE in
        good) exit 0;; soon) exit 75;; never) exit 100;; odd) exit 7;; crash) kill -9 $$;; esac";
    let (runner, folder) = Runner::start(&broker, &queue, &["--max-attempts", "1"], script);

    let mut ends = vec![];
    for job_type in ["good", "soon", "never", "odd", "crash"] {
        enqueue(&broker, &queue, job_type, "1").await;
        if job_type != "good" {
            let (job, _, failure) = dead(&broker, &queue).await;
            assert_eq!(job.job_type, job_type);
            let (_, words) = failure.chain[0].split_once(' ').unwrap();
            ends.push((failure.cause.unwrap(), words.to_owned()));
        }
    }
    runner.stop().await;

    assert_eq!(
        ends,
        [
            (
                DeadLetterCause::Exhausted,
                "ended with exit status 75".into()
            ),
            (DeadLetterCause::Fatal, "ended with exit status 100".into()),
            (
                DeadLetterCause::Exhausted,
                "ended with exit status 7".into()
            ),
            (
                DeadLetterCause::Exhausted,
                "was ended by signal 9 (SIGKILL)".into()
            ),
        ]
    );
    assert_eq!(folder.read("runs").lines().count(), 5);
    assert_eq!(left(&broker, &queue).await, (Some(0), Some(0)));
}

pub async fn a_failed_program_is_run_again_after_the_delay(broker: Broker) {
    let queue = declared(&broker).await;
    let options = [
        "--max-attempts",
        "2",
        "--retry-delay",
        "1s",
        "--backoff",
        "fixed",
    ];
    let script = "date +%s%N >>times; exit 75";
    let (runner, folder) = Runner::start(&broker, &queue, &options, script);
    enqueue(&broker, &queue, "a", "1").await;

    let (job, reason, failure) = dead(&broker, &queue).await;
    runner.stop().await;

    assert_eq!((job.attempt, failure.earlier.len()), (2, 1));
    assert!(reason.starts_with("gave up after 2 attempts: "), "{reason}");
    let times = folder.read("times");
    let times: Vec<u64> = times.lines().map(|it| it.parse().unwrap()).collect();
    assert_eq!(times.len(), 2);
    assert!(times[1] - times[0] >= 1_000_000_000, "{times:?}");
}

pub async fn a_program_gets_the_job(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "cat >payload; env | grep ^QUEUEY_ | sort >env; exit 100";
    let (runner, folder) = Runner::start(&broker, &queue, &[], script);
    let payload = "{\"b\" :  [1, 2.0],\t\"ä\":\"\\u00e4\"}";
    let mut job = Envelope::raw(
        "welcome",
        &queue.name,
        RawValue::from_string(payload.into()).unwrap(),
    );
    (job.attempt, job.deferrals, job.priority) = (3, 2, 4);
    job.correlation_id = Some("order 7".into());
    publish(&broker, &job).await;

    dead(&broker, &queue).await;
    runner.stop().await;

    assert_eq!(folder.read("payload"), payload);
    let Envelope {
        job_id,
        enqueued_at_ms,
        ..
    } = job;
    let name = &queue.name;
    let expected = format!(
        "QUEUEY_ATTEMPT=3\nQUEUEY_CONTROL_FD=FD\nQUEUEY_CORRELATION_ID=order 7\nQUEUEY_DEFERRALS=2\n\
         QUEUEY_ENQUEUED_AT={enqueued_at_ms}\nQUEUEY_JOB_ID={job_id}\nQUEUEY_JOB_TYPE=welcome\n\
         QUEUEY_MAX_ATTEMPTS=5\nQUEUEY_PRIORITY=4\nQUEUEY_QUEUE={name}\nQUEUEY_REDELIVERED=false\n"
    );
    let is_fd = |line: &&str| line.starts_with("QUEUEY_CONTROL_FD=");
    let env = folder.read("env");
    let fd = env.lines().find(is_fd).unwrap();
    assert_eq!(env.replace(fd, "QUEUEY_CONTROL_FD=FD"), expected);
}

pub async fn what_a_program_prints_is_passed_on_and_recorded(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo out; [ $QUEUEY_JOB_TYPE = silent ] || {
        seq 1000 | sed 's/^/line /' >&2; printf 'no such host' >&2; }; exit 100";
    let (mut runner, _folder) = Runner::start(&broker, &queue, &[], script);

    let job = enqueue(&broker, &queue, "loud", "1").await;
    let (_, reason, failure) = dead(&broker, &queue).await;
    enqueue(&broker, &queue, "silent", "1").await;
    let (_, _, silent) = dead(&broker, &queue).await;
    runner.signal(Signal::TERM);
    runner.ended().await;

    let tail = &failure.chain[1];
    assert!(
        tail.ends_with("line 999\nline 1000\nno such host"),
        "{tail}"
    );
    assert!(tail.len() <= 1000 && tail.len() > 900, "{}", tail.len());
    assert!(reason.ends_with(tail), "{reason}");
    assert_eq!(silent.chain[1], "out");
    let id = job.job_id;
    until("the lines", async || {
        runner.stdout().contains(&format!("[{id}] out\n"))
            && runner.stderr().contains(&format!("[{id}] line 1\n"))
            && runner.stderr().contains(&format!("[{id}] no such host\n"))
    })
    .await;
}

pub async fn a_program_defers_its_job(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "date +%s%N >>times; env | grep -E '_(ATTEMPT|DEFERRALS)=' >>env
        case $QUEUEY_DEFERRALS in
            0) echo 'defer: 1s' >&$QUEUEY_CONTROL_FD; exit 75;;
            1) echo 'defer: 500ms' >&$QUEUEY_CONTROL_FD;;
            *) exit 100;; esac";
    let (runner, folder) = Runner::start(&broker, &queue, &["--max-attempts", "1"], script);
    enqueue(&broker, &queue, "a", "1").await;

    let (job, ..) = dead(&broker, &queue).await;
    runner.stop().await;

    assert_eq!((job.attempt, job.deferrals), (1, 2));
    let times = folder.read("times");
    let times: Vec<u64> = times.lines().map(|it| it.parse().unwrap()).collect();
    assert!(times[1] - times[0] >= 1_000_000_000, "{times:?}");
    assert!(times[2] - times[1] >= 500_000_000, "{times:?}");
}

pub async fn nonsense_on_the_control_file_is_no_success(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo 'defer: soon' >&$QUEUEY_CONTROL_FD";
    let (runner, _folder) = Runner::start(&broker, &queue, &["--max-attempts", "1"], script);
    enqueue(&broker, &queue, "a", "1").await;

    let (_, _, failure) = dead(&broker, &queue).await;
    runner.stop().await;

    let told = "and it wrote `defer: soon` where `defer: DURATION` was to be";
    assert!(failure.chain[0].ends_with(told), "{failure:?}");
}

pub async fn a_large_payload_is_read_or_not(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "case $QUEUEY_JOB_TYPE in read) wc -c >size;; esac; echo x >>done";
    let (runner, folder) = Runner::start(&broker, &queue, &["--max-attempts", "1"], script);
    let payload = format!("\"{}\"", "x".repeat(10 * 1024 * 1024 - 2));

    enqueue(&broker, &queue, "unread", &payload).await;
    enqueue(&broker, &queue, "read", &payload).await;

    until("both", async || folder.read("done").lines().count() == 2).await;
    runner.stop().await;
    assert_eq!(folder.read("size").trim(), (10 * 1024 * 1024).to_string());
    assert_eq!(left(&broker, &queue).await, (Some(0), Some(0)));
}

pub async fn a_daemon_that_holds_the_pipes_holds_up_nobody(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "[ -s daemon ] || { sleep 1000 & echo $! >daemon; exit 0; }; echo x >next";
    let (runner, folder) = Runner::start(&broker, &queue, &[], script);

    enqueue(&broker, &queue, "a", "1").await;
    enqueue(&broker, &queue, "a", "1").await;

    folder.has("next").await;
    runner.stop().await;
    let daemon = folder.process("daemon");
    assert!(lives(daemon));
    kill_process(daemon, Signal::KILL).unwrap();
    assert_eq!(left(&broker, &queue).await, (Some(0), Some(0)));
}

pub async fn a_timeout_ends_the_whole_group(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "case $QUEUEY_JOB_TYPE in stubborn) trap '' TERM;; esac
        sleep 1000 & echo $! >child.$QUEUEY_JOB_TYPE; echo waiting; wait; wait";
    let options = [
        "--timeout",
        "1s",
        "--max-attempts",
        "1",
        "--concurrency",
        "2",
    ];
    let (runner, folder) = Runner::start(&broker, &queue, &options, script);
    let before = Instant::now();

    for job_type in ["meek", "stubborn"] {
        enqueue(&broker, &queue, job_type, "1").await;
    }
    let (meek, _, of_meek) = dead(&broker, &queue).await;
    let (_, _, of_stubborn) = dead(&broker, &queue).await;

    assert_eq!(meek.job_type, "meek");
    assert!(before.elapsed() >= Duration::from_secs(6));
    let ends_with = |failure: &Failure, end| {
        assert!(failure.chain[0].ends_with(end), "{failure:?}");
        assert_eq!(failure.chain[1], "waiting");
    };
    ends_with(
        &of_meek,
        "timed out after 1s: was ended by signal 15 (SIGTERM)",
    );
    ends_with(
        &of_stubborn,
        "timed out after 1s: was ended by signal 9 (SIGKILL)",
    );
    for child in ["child.meek", "child.stubborn"] {
        let child = folder.process(child);
        until("the end of the group", async || !lives(child)).await;
    }
    runner.stop().await;
}

pub async fn never_more_programs_than_agreed(broker: Broker) {
    let queue = declared(&broker).await;
    for _ in 0..8 {
        enqueue(&broker, &queue, "a", "1").await;
    }
    let script = "echo + >>log; sleep 0.5; echo - >>log";

    let (runner, folder) = Runner::start(&broker, &queue, &["--concurrency", "3"], script);
    until("all", async || folder.read("log").lines().count() == 16).await;
    runner.stop().await;

    let (mut now, mut most) = (0, 0);
    for line in folder.read("log").lines() {
        now += if line == "+" { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!(most, 3);
}

pub async fn only_the_types_asked_for_are_run(broker: Broker) {
    let queue = declared(&broker).await;
    let options = ["--type", "a", "--type", "b", "--quiet"];
    let script = "echo heard; echo $QUEUEY_JOB_TYPE >>types";
    let (mut runner, folder) = Runner::start(&broker, &queue, &options, script);

    for job_type in ["a", "c", "b"] {
        enqueue(&broker, &queue, job_type, "1").await;
    }
    until("both", async || folder.read("types") == "a\nb\n").await;
    let (job, _, failure) = dead(&broker, &queue).await;
    runner.signal(Signal::TERM);
    runner.ended().await;

    assert_eq!(
        (job.job_type.as_str(), failure.cause),
        ("c", Some(DeadLetterCause::NoHandler))
    );
    assert!(!runner.stdout().contains("heard"));
}

pub async fn a_signal_lets_a_running_program_end(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo x >>started; while [ ! -e go ]; do sleep 0.1; done; echo x >ended";
    let (mut runner, folder) = Runner::start(&broker, &queue, &[], script);
    for _ in 0..2 {
        enqueue(&broker, &queue, "a", "1").await;
    }
    folder.has("started").await;

    runner.signal(Signal::TERM);
    until("the order", async || {
        runner.stderr().contains("told to stop by Term")
    })
    .await;
    fs::write(folder.0.join("go"), "").unwrap();
    let status = runner.ended().await;

    assert!(status.success(), "{}", runner.stderr());
    assert!(!folder.read("ended").is_empty());
    assert_eq!(folder.read("started").lines().count(), 1);
    until("the job", async || {
        left(&broker, &queue).await == (Some(1), Some(0))
    })
    .await;
}

pub async fn a_program_is_told_to_end_after_the_grace(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "trap 'echo x >told; exit 0' TERM; echo x >started; while :; do sleep 0.1; done";
    let (runner, folder) = Runner::start(&broker, &queue, &["--grace", "1s"], script);
    enqueue(&broker, &queue, "a", "1").await;
    folder.has("started").await;
    let before = Instant::now();

    runner.stop().await;

    assert!(before.elapsed() >= Duration::from_secs(1));
    assert!(!folder.read("told").is_empty());
    assert_eq!(left(&broker, &queue).await, (Some(0), Some(0)));
}

pub async fn a_program_told_to_end_gives_its_job_back(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo x >started; exec sleep 1000";
    let (runner, folder) = Runner::start(&broker, &queue, &["--grace", "0s"], script);
    enqueue(&broker, &queue, "a", "1").await;
    folder.has("started").await;

    runner.stop().await;

    until("the job", async || {
        broker.ready(&queue.name).await == Some(1)
    })
    .await;
    assert_eq!(
        broker.take(&queue.name).await.unwrap().envelope().attempt,
        1
    );
}

/// A program that does not end when it is told, and whose job is back with its attempt.
async fn given_back(broker: &Broker, options: &[&str], signals: usize) {
    let queue = declared(broker).await;
    let script = "trap '' TERM; echo $$ >started; while :; do sleep 0.1; done";
    let (mut runner, folder) = Runner::start(broker, &queue, options, script);
    enqueue(broker, &queue, "a", "1").await;
    folder.has("started").await;

    for number in 1..=signals {
        runner.signal(Signal::TERM);
        until("the order", async || {
            runner.stderr().matches("told to stop by Term").count() == number
        })
        .await;
    }
    let status = runner.ended().await;

    assert!(status.success(), "{}", runner.stderr());
    until("the job", async || {
        left(broker, &queue).await == (Some(1), Some(0))
    })
    .await;
    let job = broker.take(&queue.name).await.unwrap();
    assert!(job.redelivered);
    assert_eq!(job.envelope().attempt, 1);
    let program = folder.process("started");
    until("the end of the program", async || !lives(program)).await;
}

pub async fn a_second_signal_gives_the_job_back(broker: Broker) {
    given_back(&broker, &[], 2).await;
}

pub async fn the_deadline_gives_the_job_back(broker: Broker) {
    given_back(&broker, &["--grace", "0s", "--deadline", "1s"], 1).await;
}

pub async fn systemd_is_told(broker: Broker) {
    let folder = Folder::new();
    let path = folder.0.join("notify");
    let name = format!("queuey-test-{}", Uuid::new_v4().simple());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    for (socket, address) in [
        (UnixDatagram::bind(&path).unwrap(), text_of(&path)),
        (
            UnixDatagram::bind_addr(&address).unwrap(),
            format!("@{name}"),
        ),
    ] {
        let queue = declared(&broker).await;
        socket.set_nonblocking(true).unwrap();
        let environment = [
            ("NOTIFY_SOCKET", address.as_str()),
            ("WATCHDOG_USEC", "400000"),
        ];
        let script = "env >env; exit 0";
        let (mut runner, of_job) = Runner::start_with(&broker, &queue, &[], script, &environment);
        let mut told = String::new();
        until("the watchdog", async || {
            hear(&socket, &mut told);
            told.matches("WATCHDOG=1\n").count() >= 3
        })
        .await;
        enqueue(&broker, &queue, "a", "1").await;
        until("the status", async || {
            hear(&socket, &mut told);
            told.contains(": 1 done, ")
        })
        .await;
        runner.signal(Signal::TERM);
        runner.ended().await;
        hear(&socket, &mut told);

        assert!(told.starts_with("READY=1\nSTATUS="), "{told}");
        assert_eq!(told.matches("STOPPING=1\n").count(), 1, "{told}");
        assert!(!of_job.read("env").contains("NOTIFY_SOCKET"));
    }
}

pub async fn the_watchdog_starves_while_the_broker_is_away(broker: Broker) {
    let queue = declared(&broker).await;
    let relay = Relay::to(&broker.url);
    let name = format!("queuey-test-{}", Uuid::new_v4().simple());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let environment = [
        ("AMQP_URL", relay.url.as_str()),
        ("NOTIFY_SOCKET", &format!("@{name}")),
        ("WATCHDOG_USEC", "200000"),
    ];
    let (runner, _folder) = Runner::start_with(&broker, &queue, &[], "exit 0", &environment);
    let mut told = String::new();
    let mut heard = async |what: &str, times: usize| {
        told.clear();
        until(what, async || {
            hear(&socket, &mut told);
            told.matches(what).count() >= times
        })
        .await;
        told.clone()
    };

    heard("WATCHDOG=1", 1).await;
    relay.refuse(true);
    relay.cut();
    heard("the broker is away", 1).await;
    let outage = heard("the broker is away", 3).await;
    relay.refuse(false);
    heard("WATCHDOG=1", 2).await;
    runner.stop().await;

    assert!(!outage.contains("WATCHDOG=1"), "{outage}");
}

pub async fn no_program_is_left_a_zombie(broker: Broker) {
    let queue = declared(&broker).await;
    let script = "echo x >>log; [ $QUEUEY_JOB_TYPE != slow ] || sleep 1000";
    let options = [
        "--concurrency",
        "4",
        "--timeout",
        "1s",
        "--max-attempts",
        "1",
    ];
    let (runner, folder) = Runner::start(&broker, &queue, &options, script);
    for job_type in ["quick", "slow"].repeat(4) {
        enqueue(&broker, &queue, job_type, "1").await;
    }

    until("all", async || folder.read("log").lines().count() == 8).await;

    let parent = runner.child.id().to_string();
    until("no children", async || {
        let processes = fs::read_dir("/proc").unwrap();
        let stat = |it: fs::DirEntry| fs::read_to_string(it.path().join("stat")).ok();
        let stats = processes.filter_map(|it| stat(it.ok()?));
        // Number, name, state, parent.
        let of = |stat: String| {
            stat.rsplit(") ")
                .next()?
                .split(' ')
                .nth(1)
                .map(String::from)
        };
        !stats.filter_map(of).any(|of| of == parent)
    })
    .await;
    runner.stop().await;
}

/// What has come in at `socket`.
fn hear(socket: &UnixDatagram, told: &mut String) {
    let mut one = [0; 1024];
    while let Ok(size) = socket.recv(&mut one) {
        *told += &format!("{}\n", text(&one[..size]));
    }
}

fn text_of(path: &Path) -> String {
    path.to_str().unwrap().into()
}

pub async fn a_program_that_does_not_exist_is_told_at_start(broker: Broker) {
    let queue = declared(&broker).await;
    for program in ["queuey-no-such-program", "/", "/etc/passwd"] {
        let output = run(&broker, &["run", &queue.name, "--exec", program]).await;

        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("there is no program `"));
    }
    let missing = broker.name();
    let output = run(&broker, &["run", &missing, "--exec", "true"]).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(broker.ready(&missing).await.is_none());
}
