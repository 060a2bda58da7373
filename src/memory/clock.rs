//! [`Clock`]: time since the backend was made; [`Alarm`]: a wait for it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
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

    pub(super) fn is_manual(&self) -> bool {
        self.running.is_none()
    }

    /// A wait for `at`; `None` when time does not pass by itself.
    pub(super) fn wait_until(&self, at: Duration) -> Option<Wait> {
        let (runtime, _) = self.running.as_ref()?;
        Some(Wait {
            at,
            delay: at.saturating_sub(self.now()),
            runtime: runtime.clone(),
        })
    }
}

/// What an [`Alarm`] is set to.
#[derive(Debug)]
pub(super) struct Wait {
    at: Duration,
    delay: Duration,
    runtime: Runtime,
}

/// Wakes its task when the time has come.
#[derive(Default)]
pub(super) struct Alarm(Option<(Duration, Pin<Box<dyn Future<Output = ()> + Send>>)>);

impl Alarm {
    /// Replaces what was set before.
    pub(super) fn set(&mut self, wait: Option<Wait>) {
        if self.0.as_ref().map(|(at, _)| *at) == wait.as_ref().map(|wait| wait.at) {
            return;
        }
        self.0 = wait.map(|Wait { at, delay, runtime }| {
            let sleep: Pin<Box<dyn Future<Output = ()> + Send>> =
                Box::pin(async move { runtime.sleep(delay).await });
            (at, sleep)
        });
    }

    /// Ready when the time has come; pending for ever when nothing is set.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((_, sleep)) = &mut self.0 else {
            return Poll::Pending;
        };
        std::task::ready!(sleep.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(())
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Alarm")
            .field(&self.0.as_ref().map(|(at, _)| at))
            .finish()
    }
}
