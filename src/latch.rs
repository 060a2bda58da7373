//! [`Latch`]: raised once and for good; anyone may wait for it.

use std::{convert::Infallible, fmt, sync::Arc};

use async_channel::{Receiver, Sender};

// Nothing is ever sent: that the channel is closed is the signal.
#[derive(Clone)]
pub(crate) struct Latch(Arc<(Sender<Infallible>, Receiver<Infallible>)>);

impl Latch {
    pub(crate) fn new() -> Self {
        Self(Arc::new(async_channel::bounded(1)))
    }

    pub(crate) fn raise(&self) {
        self.0.0.close();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.0.is_closed()
    }

    /// Returns once the latch is raised.
    pub(crate) async fn raised(&self) {
        self.0.0.closed().await;
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Latch").field(&self.is_raised()).finish()
    }
}
