//! [`Clock`]: time since the backend was made; [`Alarm`]: a wait for it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use crate::Runtime;

/// Runs with real time, stands still, or is moved by hand.
#[derive(Debug)]
pub(super) struct Clock {
    running: Option<(Runtime, Instant)>,
    advanced: Duration,
}

impl Clock {
    /// Real time.
    pub(super) fn running(runtime: Runtime) -> Self {
        Self {
            running: Some((runtime, Instant::now())),
            advanced: Duration::ZERO,
        }
    }

    /// The runtime that tells the time, if one does.
    pub(super) fn runtime(&self) -> Option<Runtime> {
        self.running.as_ref().map(|(runtime, _)| runtime.clone())
    }

    /// Moved by [`advance`](Self::advance) alone.
    pub(super) fn manual() -> Self {
        Self {
            running: None,
            advanced: Duration::ZERO,
        }
    }

    pub(super) fn now(&self) -> Duration {
        let elapsed = self.running.as_ref().map(|(_, start)| start.elapsed());
        elapsed.unwrap_or_default().saturating_add(self.advanced)
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.advanced = self.advanced.saturating_add(by);
    }

    /// Believes a runtime that has slept until `at`, even if its clock is a paused one.
    pub(super) fn reached(&mut self, at: Duration) {
        self.advance(at.saturating_sub(self.now()));
    }

    pub(super) fn is_manual(&self) -> bool {
        self.running.is_none()
    }

    /// A wait for `at`; `None` when time does not pass by itself.
    pub(super) fn wait_until(&self, at: Duration) -> Option<Wait> {
        let (runtime, start) = self.running.as_ref()?;
        Some(Wait {
            at,
            ends: *start + at.saturating_sub(self.advanced),
            runtime: runtime.clone(),
        })
    }
}

/// What an [`Alarm`] is set to.
#[derive(Debug)]
pub(super) struct Wait {
    at: Duration,
    ends: Instant,
    runtime: Runtime,
}

/// Wakes its task when the time has come.
#[derive(Default)]
pub(super) struct Alarm(Option<(Wait, Sleep)>);

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Alarm {
    /// Replaces what was set before.
    pub(super) fn set(&mut self, wait: Option<Wait>) {
        let ends = |wait: &Wait| (wait.at, wait.ends);
        if self.0.as_ref().map(|(wait, _)| ends(wait)) == wait.as_ref().map(ends) {
            return;
        }
        self.0 = wait.map(|wait| {
            let runtime = wait.runtime.clone();
            let delay = wait.ends.saturating_duration_since(Instant::now());
            let sleep: Sleep = Box::pin(async move { runtime.sleep(delay).await });
            (wait, sleep)
        });
    }

    /// Ready when the time has come, with that time; pending for ever when nothing is set.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some((wait, sleep)) = &mut self.0 else {
            return Poll::Pending;
        };
        let at = wait.at;
        ready!(sleep.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(at)
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Alarm")
            .field(&self.0.as_ref().map(|(wait, _)| wait))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_has_slept_is_believed() {
        let mut clock = Clock::running(Runtime::default());
        let at = Duration::from_secs(60);

        clock.reached(at);

        assert!(clock.now() >= at);
    }

    #[test]
    fn a_time_that_has_passed_changes_nothing() {
        let mut clock = Clock::manual();
        clock.advance(Duration::from_secs(60));

        clock.reached(Duration::from_secs(1));

        assert_eq!(clock.now(), Duration::from_secs(60));
    }

    #[test]
    fn a_manual_clock_never_overflows() {
        let mut clock = Clock::manual();

        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);

        assert_eq!(clock.now(), Duration::MAX);
    }
}
