//! [`InFlight`]: a publish that outlives its caller, and not for ever.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use super::publish::Lane;
use crate::{Error, Result, runtime::client};

/// A publish that goes on when its caller has dropped it: its place in the window and what lapin
/// keeps for it are free when the broker has answered, or when that takes too long.
pub(super) struct InFlight<F>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    publish: Option<Pin<Box<F>>>,
    lane: Arc<Lane>,
    limit: Duration,
}

impl<F> InFlight<F>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    pub(super) fn new(lane: Arc<Lane>, limit: Duration, publish: F) -> Self {
        Self {
            publish: Some(Box::pin(publish)),
            lane,
            limit,
        }
    }
}

impl<F> Future for InFlight<F>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(publish) = &mut self.publish else {
            return Poll::Ready(Err(Error::Closed));
        };
        let verdict = ready!(publish.as_mut().poll(cx));
        self.publish = None;
        Poll::Ready(verdict)
    }
}

impl<F> Drop for InFlight<F>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(publish) = self.publish.take() {
            let (lane, limit) = (self.lane.clone(), self.limit);
            client().run(abandoned(publish, lane, limit));
        }
    }
}

/// Waits for the end of a publish that nobody waits for any more, for as long as a caller would.
async fn abandoned(
    mut publish: impl Future<Output = Result<()>> + Unpin,
    lane: Arc<Lane>,
    limit: Duration,
) {
    while client().timeout(limit, &mut publish).await.is_none() {
        // Under an alarm its turn has not come yet.
        if !lane.is_blocked() {
            return lane.retire();
        }
    }
}
