//! [`Meter`]: what this process has used since, and [`Figures`], how that travels.

use std::{fs, time::Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use super::Failure;

/// Time, CPU and context switches of this process from here on.
#[derive(Debug)]
pub struct Meter {
    at: Instant,
    used: Used,
}

#[derive(Debug, Clone, Copy)]
struct Used {
    cpu_us: i64,
    switches: i64,
}

/// What one process measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Operations measured.
    pub jobs: u64,
    /// How long they took.
    pub seconds: f64,
    /// User and system time meanwhile, of all threads, in microseconds.
    pub cpu_us: f64,
    /// Context switches meanwhile, of all threads.
    pub switches: f64,
    /// Memory at the end, in bytes.
    pub rss: f64,
    /// The most memory ever.
    pub peak_rss: f64,
    /// Threads at the end.
    pub threads: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// The latency one job in a hundred exceeds.
    pub p99_us: f64,
}

impl Meter {
    /// Starts.
    ///
    /// # Panics
    /// When the system tells nothing.
    pub fn start() -> Self {
        // The clock last: reading the usage is not part of what follows.
        let used = Used::now();
        let at = Instant::now();
        Self { at, used }
    }

    /// What `jobs` operations have taken.
    ///
    /// # Errors
    /// When the system tells nothing.
    pub fn stop(&self, jobs: u64) -> Result<Figures, Failure> {
        let seconds = self.at.elapsed().as_secs_f64();
        let used = Used::now();
        // Not the maximum of `getrusage`: a child inherits its parent's.
        let status = fs::read_to_string("/proc/self/status")?;
        let field = |name| number(&status, name).ok_or_else(|| format!("no {name} in {status}"));
        Ok(Figures {
            jobs,
            seconds,
            cpu_us: (used.cpu_us - self.used.cpu_us) as f64,
            switches: (used.switches - self.used.switches) as f64,
            rss: 1024.0 * field("VmRSS:")?,
            peak_rss: 1024.0 * field("VmHWM:")?,
            threads: field("Threads:")?,
            ..Figures::default()
        })
    }
}

impl Used {
    fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may see its own usage");
        let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
        Self {
            cpu_us: micros(usage.user_time()) + micros(usage.system_time()),
            switches: usage.voluntary_context_switches() + usage.involuntary_context_switches(),
        }
    }
}

fn number(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
