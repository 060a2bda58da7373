//! [`InFlight`]: a publish that outlives its caller, and not for ever.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_lite::future::or;
use futures_util::future::BoxFuture;

use super::lane::Lane;
use crate::{Error, Result, runtime::client};

/// A publish that goes on when its caller has dropped it: its place in the window and what lapin
/// keeps for it are free when the broker has answered, or when that takes too long.
pub(super) struct InFlight {
    publish: Option<BoxFuture<'static, Result<()>>>,
    lane: Arc<Lane>,
    limit: Duration,
}

impl InFlight {
    pub(super) fn new(
        lane: Arc<Lane>,
        limit: Duration,
        publish: BoxFuture<'static, Result<()>>,
    ) -> Self {
        Self {
            publish: Some(publish),
            lane,
            limit,
        }
    }
}

impl Future for InFlight {
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

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(publish) = self.publish.take() {
            let (lane, limit) = (self.lane.clone(), self.limit);
            client().run(abandoned(publish, lane, limit));
        }
    }
}

/// Waits for the end of a publish that nobody waits for any more, for as long as a caller would.
async fn abandoned(publish: BoxFuture<'static, Result<()>>, lane: Arc<Lane>, limit: Duration) {
    let mut ended = pin!(or(async { drop(publish.await) }, lane.over()));
    while client().timeout(limit, ended.as_mut()).await.is_none() {
        // Under an alarm its turn has not come yet.
        if !lane.is_blocked() {
            return lane.retire();
        }
    }
}
