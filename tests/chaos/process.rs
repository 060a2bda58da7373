//! [`Process`]: this test once more, as a worker of its own.

use std::{
    env,
    fmt::Debug,
    future::Future,
    io::{BufRead, BufReader},
    process::{Child, Command, ExitCode, Stdio},
    thread,
};

use async_global_executor::block_on;
use queuey_rabbitmq::Result;

/// Does the work of a child; answers how it exits, if nothing ends it before.
pub fn live<T: Debug>(work: impl Future<Output = Result<T>>) -> ExitCode {
    let end = block_on(work);
    eprintln!("    the child ends: {end:?}");
    end.map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS)
}

/// A child; killed when it is dropped.
pub struct Process(pub Child);

impl Process {
    /// A child with `variable` in its environment, whose lines are heard.
    pub fn start(variable: &str, value: &str, hear: impl Fn(String) + Send + 'static) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .env(variable, value)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        thread::spawn(move || lines.map_while(Result::ok).for_each(hear));
        Self(child)
    }

    pub fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
