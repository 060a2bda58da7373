//! [`Deadlines`]: one time limit for many, kept with a single timer.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use event_listener::Event;
use futures_lite::future;

use super::client;

/// A time limit that thousands a second ask for. All who wait look together, now and then, whether
/// their time has come.
#[derive(Debug)]
pub(crate) struct Deadlines {
    limit: Duration,
    moment: Event,
    ticking: AtomicBool,
}

impl Deadlines {
    pub(crate) fn new(limit: Duration) -> Arc<Self> {
        Arc::new(Self {
            limit,
            moment: Event::new(),
            ticking: AtomicBool::new(false),
        })
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Resolves when the limit has passed from now, and not much later. Until then, whatever is
    /// polled beside it is polled at every look too.
    pub(crate) fn start(self: &Arc<Self>) -> impl Future<Output = ()> + use<'_> {
        let due = Instant::now().checked_add(self.limit);
        let mut moment = self.moment.listen();
        if !self.ticking.swap(true, Ordering::SeqCst) {
            client().run(self.clone().tick());
        }
        async move {
            loop {
                moment.await;
                if due.is_some_and(|due| due <= Instant::now()) {
                    return;
                }
                moment = self.moment.listen();
                future::yield_now().await;
            }
        }
    }

    /// Lets all who wait look again.
    pub(crate) fn look(&self) {
        self.moment.notify(usize::MAX);
    }

    /// Ticks for as long as somebody waits.
    async fn tick(self: Arc<Self>) {
        let pause = (self.limit / 16).clamp(Duration::from_millis(1), Duration::from_secs(1));
        loop {
            client().sleep(pause).await;
            self.look();
            if self.moment.total_listeners() > 0 {
                continue;
            }
            self.ticking.store(false, Ordering::SeqCst);
            // Whoever came in between has found it ticking.
            if self.moment.total_listeners() == 0 || self.ticking.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::{block_on, poll_once, zip};

    use super::*;

    #[test]
    fn nobody_is_late_before_the_limit_and_the_timer_rests_when_nobody_waits() {
        let limit = Duration::from_millis(50);
        let deadlines = Deadlines::new(limit);
        for _ in 0..2 {
            let start = Instant::now();
            block_on(zip(deadlines.start(), deadlines.start()));
            assert!(start.elapsed() >= limit);
            while deadlines.ticking.load(Ordering::SeqCst) {
                assert!(start.elapsed() < Duration::from_secs(10), "it goes on");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_look_ends_no_wait_and_an_endless_limit_is_one() {
        let deadlines = Deadlines::new(Duration::MAX);
        block_on(async {
            let mut late = std::pin::pin!(deadlines.start());
            for _ in 0..3 {
                deadlines.look();
                assert_eq!(poll_once(late.as_mut()).await, None);
            }
        });
    }
}
