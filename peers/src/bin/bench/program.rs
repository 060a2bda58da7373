//! [`Program`]: one contender, one fresh process for each measurement.

use std::{
    env, fmt,
    io::Read,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use peers::bench::{Failure, Figures};

/// How long one measurement may take.
const LIMIT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Ours,
    Queuey,
    Raw,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Queuey => "queuey",
            Self::Raw => "raw",
        }
    }

    /// Runs it once and reads its figures. The programs lie beside this one.
    pub(crate) fn run(
        self,
        url: &str,
        scenario: &str,
        settings: &[String],
    ) -> Result<Figures, Failure> {
        let path = env::current_exe()?.with_file_name(format!("bench-{self}"));
        let what = format!("bench-{self} {scenario} {}", settings.join(" "));
        let mut process = Command::new(path)
            .arg(scenario)
            .args(settings)
            .env("AMQP_URL", url)
            .stdout(Stdio::piped())
            .spawn()?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = process.try_wait()? {
                break status;
            }
            if start.elapsed() > LIMIT {
                process.kill()?;
                process.wait()?;
                return Err(format!("{what}: not done after {LIMIT:?}").into());
            }
            thread::sleep(Duration::from_millis(20));
        };
        let mut line = String::new();
        if let Some(mut output) = process.stdout.take() {
            output.read_to_string(&mut line)?;
        }
        if !status.success() {
            return Err(format!("{what}: {status}").into());
        }
        serde_json::from_str(&line).map_err(|error| format!("{what}: {error}: {line}").into())
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
