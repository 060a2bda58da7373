//! [`Deadlines`]: one time limit for many, kept with few timers.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use event_listener::{Event, EventListener};

use super::client;

/// A time limit that thousands a second ask for: all who start within the same moment share a
/// timer, set for the last of them.
#[derive(Debug)]
pub(crate) struct Deadlines {
    limit: Duration,
    current: Mutex<Option<(Instant, Arc<Event>)>>,
}

impl Deadlines {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            current: Mutex::default(),
        }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Resolves when the limit has passed from now, and not much later.
    pub(crate) fn start(&self) -> EventListener {
        let moment = (self.limit / 16).min(Duration::from_secs(1));
        let now = Instant::now();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((start, event)) = &*current
            && now.duration_since(*start) < moment
        {
            return event.listen();
        }
        let event = Arc::new(Event::new());
        let listener = event.listen();
        *current = Some((now, event.clone()));
        let limit = self.limit.saturating_add(moment);
        client().run(async move {
            client().sleep(limit).await;
            event.notify(usize::MAX);
        });
        listener
    }
}
