//! [`Program`]: one run of the program, from its start to the end of its processes.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    pin::pin,
    process::{self, ExitStatus, Stdio},
    time::Duration,
};

use async_io::Timer;
use async_process::{Child, ChildStdin, Command};
use futures_lite::{
    AsyncWriteExt,
    future::{self, or, zip},
};
use futures_util::future::{FusedFuture, FutureExt};
use queuey_rabbitmq::{Envelope, JobContext, JobError};

use super::{
    control::{Control, Pipe},
    group::Group,
    outcome::{Ended, Stop, failure, verdict},
    output::{Sink, Tail},
};
use crate::failure::Failure;

/// How long a program that was told to end is waited for.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// How long what holds the pipes of a program that has ended is listened to.
const LINGER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    timeout: Option<Duration>,
    quiet: bool,
    control: Control,
}

impl Program {
    /// # Errors
    /// When there is no such program, or it may not be run.
    pub(super) fn find(
        command: &[OsString],
        timeout: Option<Duration>,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let control = Control::new()?;
        let (name, arguments) = command.split_first().expect("clap asks for one");
        let path = find(Path::new(name)).ok_or_else(|| {
            let name = name.to_string_lossy();
            Failure::Usage(format!("there is no program `{name}` that may be run"))
        })?;
        Ok(Self {
            path,
            arguments: arguments.to_vec(),
            timeout,
            quiet,
            control,
        })
    }

    pub(super) async fn run(&self, job: Envelope, ctx: JobContext) -> Result<(), JobError> {
        let path = self.path.display();
        let (mut child, mut pipe) = self
            .start(&job, &ctx)
            .map_err(|error| failure(format!("cannot start {path}: {error}")))?;
        let group = Group::of(&child);
        let (mut out, mut err) = (Tail::default(), Tail::default());
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (told, status) = {
            let sink = |sink| (!self.quiet).then_some((job.job_id, sink));
            let output = zip(
                out.fill(stdout, sink(Sink::Stdout)),
                err.fill(stderr, sink(Sink::Stderr)),
            );
            let pipes = async {
                zip(zip(feed(stdin, &job), output), pipe.fill()).await;
            };
            let mut pipes = pin!(pipes.fuse());
            let ended = or(self.end(&mut child, &group, &ctx), async {
                (&mut pipes).await;
                future::pending().await
            });
            let ended = ended.await;
            group.is_over();
            if !pipes.is_terminated() {
                let linger = async {
                    Timer::after(LINGER).await;
                };
                or(pipes, linger).await;
            }
            ended
        };
        let ended = Ended {
            program: &self.path,
            status: status.map_err(|error| failure(format!("cannot wait for {path}: {error}")))?,
            told,
            control: pipe.said(),
            output: if err.is_empty() { &out } else { &err },
        };
        verdict(ended)
    }

    fn start(&self, job: &Envelope, ctx: &JobContext) -> io::Result<(Child, Pipe)> {
        let mut command = process::Command::new(&self.path);
        command
            .args(&self.arguments)
            .process_group(0)
            // Ours alone.
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .env("QUEUEY_JOB_ID", job.job_id.to_string())
            .env("QUEUEY_JOB_TYPE", &job.job_type)
            .env("QUEUEY_QUEUE", &job.queue)
            .env("QUEUEY_ATTEMPT", job.attempt.to_string())
            .env("QUEUEY_MAX_ATTEMPTS", ctx.max_attempts.to_string())
            .env("QUEUEY_DEFERRALS", job.deferrals.to_string())
            .env("QUEUEY_PRIORITY", job.priority.to_string())
            .env("QUEUEY_ENQUEUED_AT", job.enqueued_at_ms.to_string())
            .env("QUEUEY_REDELIVERED", ctx.redelivered.to_string());
        match &job.correlation_id {
            Some(id) => command.env("QUEUEY_CORRELATION_ID", id),
            None => command.env_remove("QUEUEY_CORRELATION_ID"),
        };
        let mut command = Command::from(command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.control.spawn(&mut command)
    }

    /// Waits for the program, and ends it when it is time to.
    async fn end(
        &self,
        child: &mut Child,
        group: &Group,
        ctx: &JobContext,
    ) -> (Option<Stop>, io::Result<ExitStatus>) {
        let late = async {
            let Some(limit) = self.timeout else {
                return future::pending().await;
            };
            Timer::after(limit).await;
            Err(Stop::TimedOut(limit))
        };
        let cancelled = async {
            ctx.cancelled().await;
            Err(Stop::Cancelled)
        };
        let ended = async { Ok(child.status().await) };
        match or(ended, or(late, cancelled)).await {
            Ok(status) => (None, status),
            Err(stop) => {
                group.terminate();
                let killed = async {
                    Timer::after(KILL_AFTER).await;
                };
                // What it has started has as long as itself.
                or(group.gone(child), killed).await;
                group.kill();
                (Some(stop), child.status().await)
            }
        }
    }
}

/// Writes the payload. A program that does not read it may have its reasons.
async fn feed(stdin: Option<ChildStdin>, job: &Envelope) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(job.payload.get().as_bytes()).await;
    }
}

fn find(name: &Path) -> Option<PathBuf> {
    let may_run = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if name.components().count() > 1 || name.is_absolute() {
        return Some(name.to_owned()).filter(may_run);
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(may_run)
}
