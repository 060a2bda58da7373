//! `queuey run`: how programs end, and what becomes of their jobs.

use std::time::{Duration, Instant};

use queuey_rabbitmq::{DeadLetterCause, Envelope, Failure, FailureKind};
use rustix::process::{Signal, kill_process};
use serde_json::value::RawValue;

use crate::{
    runner::{Runner, dead, enqueue, left, lives, publish, until},
    support::Broker,
    tool::{declared, run, text},
};

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
            assert_eq!((failure.kind, failure.place), (FailureKind::Error, None));
            assert_eq!(failure.error_type, None);
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
        assert_eq!(
            (failure.kind, &failure.place),
            (FailureKind::Timeout, &None)
        );
        assert_eq!(failure.cause, Some(DeadLetterCause::Exhausted));
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
