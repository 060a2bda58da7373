//! [`Contained`]: user code whose panics cannot reach the worker.

use std::{
    any::Any,
    fmt,
    future::Future,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;

use super::place;
use crate::error::panic_text;

/// A future that answers its own panic instead of passing it on, and may panic in its drop.
pub(super) struct Contained<'a, T>(Option<BoxFuture<'a, T>>);

/// What a panic said, if it said anything, and where, if that is known.
#[derive(Debug)]
pub(super) struct Panic {
    said: Option<String>,
    place: Option<String>,
}

impl<'a, T> Contained<'a, T> {
    pub(super) fn new(work: impl Future<Output = T> + Send + 'a) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T> Future for Contained<'_, T> {
    type Output = Result<T, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.0.as_mut().expect("only drop takes it");
        match catch(|| work.as_mut().poll(cx)) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl<T> Drop for Contained<'_, T> {
    fn drop(&mut self) {
        let work = self.0.take();
        if let Err(panic) = catch(|| drop(work)) {
            log::error!("a future {panic} while it was dropped");
        }
    }
}

/// What `work` answers, or its panic.
pub(super) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    // User code may be left in any state by its panic; that is its own affair, as on a thread.
    catch_unwind(AssertUnwindSafe(work)).map_err(Panic::of)
}

impl Panic {
    fn of(payload: Box<dyn Any + Send>) -> Self {
        let panic = Self {
            said: panic_text(&*payload).map(Into::into),
            place: place::of(&*payload),
        };
        // A payload may panic in its drop, and so may the next: leak that one.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(again);
        }
        panic
    }

    /// What it said, or that it said nothing.
    pub(super) fn text(&self) -> &str {
        self.said.as_deref().unwrap_or("a non-text payload")
    }

    pub(super) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.said {
            Some(text) => write!(f, "panicked: {text}"),
            None => f.write_str("panicked with a non-text payload"),
        }
    }
}
