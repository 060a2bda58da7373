//! [`Control`]: the file in which a program says `defer: 30s`.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsRawFd, OwnedFd},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_io::Async;
use async_process::{Child, Command};
use rustix::io::{DupFlags, dup2, dup3};

/// More than anybody has to say.
const LIMIT: usize = 4096;

/// The number at which every program finds its own pipe.
///
/// Held while nothing is started by `/dev/null`, so that nothing else gets the number.
#[derive(Debug)]
pub(super) struct Control(Mutex<(OwnedFd, File)>);

impl Control {
    pub(super) fn new() -> io::Result<Self> {
        let fd = File::open("/dev/null")?;
        let null = fd.try_clone()?;
        Ok(Self(Mutex::new((fd.into(), null))))
    }

    /// Starts `command` with a pipe of its own. One at a time: others would inherit it, too.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<(Child, Pipe)> {
        let (reader, writer) = io::pipe()?;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (fd, null) = &mut *held;
        command.env("QUEUEY_CONTROL_FD", fd.as_raw_fd().to_string());
        dup2(&writer, fd)?;
        let child = command.spawn();
        dup3(null, fd, DupFlags::CLOEXEC)?;
        let pipe = Async::new(File::from(OwnedFd::from(reader)))?;
        Ok((child?, Pipe(pipe, vec![])))
    }
}

/// What one program says.
#[derive(Debug)]
pub(super) struct Pipe(Async<File>, Vec<u8>);

impl Pipe {
    pub(super) async fn fill(&mut self) {
        let mut some = [0; 256];
        while let Ok(read @ 1..) = self.0.read_with(|mut file| file.read(&mut some)).await {
            let room = LIMIT.saturating_sub(self.1.len());
            self.1.extend_from_slice(&some[..read.min(room)]);
        }
    }

    /// How long to defer the job, if at all. Of several lines, the last counts.
    pub(super) fn said(&self) -> Result<Option<Duration>, String> {
        let text = String::from_utf8_lossy(&self.1);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(delay).next_back().transpose()
    }
}

fn delay(line: &str) -> Result<Duration, String> {
    let delay = line.strip_prefix("defer:").map(str::trim);
    let delay = delay.and_then(|delay| humantime::parse_duration(delay).ok());
    delay.ok_or_else(|| format!("it wrote `{line}` where `defer: DURATION` was to be"))
}
