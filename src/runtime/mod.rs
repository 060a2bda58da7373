//! [`Runtime`]: the executor as a value.

mod client;
mod deadlines;
mod returns;
mod wire;

use std::{future::Future, time::Duration};

use futures_lite::future;

use crate::{Error, Result};

pub(crate) use client::client;
pub(crate) use deadlines::Deadlines;
pub(crate) use returns::Returns;
pub(crate) use wire::{Login, Socket, Wire};

#[cfg(not(any(feature = "async-global-executor", feature = "smol", feature = "tokio")))]
compile_error!(
    "queuey-rabbitmq needs a runtime: enable the feature `async-global-executor` (the default), `smol` or `tokio`"
);

/// Where handlers run and timers tick.
///
/// [`Runtime::default`] is the current tokio runtime when the feature `tokio` is on and the caller
/// is inside one; else async-global-executor, else smol, whichever is built in. Under async-std
/// the default is the right one.
#[derive(Debug, Clone)]
pub struct Runtime(Kind);

#[derive(Debug, Clone)]
enum Kind {
    #[cfg(feature = "async-global-executor")]
    Global,
    #[cfg(feature = "smol")]
    Smol,
    #[cfg(feature = "tokio")]
    Tokio(tokio::runtime::Handle),
}

impl Runtime {
    /// The executor of the crate async-global-executor.
    #[cfg(feature = "async-global-executor")]
    pub fn async_global_executor() -> Self {
        Self(Kind::Global)
    }

    /// The executor of the crate smol.
    #[cfg(feature = "smol")]
    pub fn smol() -> Self {
        Self(Kind::Smol)
    }

    /// The current tokio runtime.
    ///
    /// # Panics
    /// Outside a tokio runtime; [`tokio_handle`](Self::tokio_handle) takes any.
    #[cfg(feature = "tokio")]
    pub fn tokio() -> Self {
        Self::tokio_handle(tokio::runtime::Handle::current())
    }

    /// This tokio runtime, which needs its time driver enabled.
    #[cfg(feature = "tokio")]
    pub fn tokio_handle(handle: tokio::runtime::Handle) -> Self {
        Self(Kind::Tokio(handle))
    }

    /// Runs `work` to its end on this thread.
    ///
    /// # Panics
    /// With a tokio runtime, inside any tokio runtime.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        match &self.0 {
            #[cfg(feature = "async-global-executor")]
            Kind::Global => async_global_executor::block_on(work),
            #[cfg(feature = "smol")]
            Kind::Smol => smol::block_on(work),
            #[cfg(feature = "tokio")]
            Kind::Tokio(handle) => handle.block_on(work),
        }
    }

    /// Runs `task` in the background. Nothing waits for it; it must report for itself.
    ///
    /// Answers with an error, `task` dropped, when the runtime is gone.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        match &self.0 {
            #[cfg(feature = "async-global-executor")]
            Kind::Global => async_global_executor::spawn(task).detach(),
            #[cfg(feature = "smol")]
            Kind::Smol => smol::spawn(task).detach(),
            #[cfg(feature = "tokio")]
            Kind::Tokio(handle) => {
                let task = handle.spawn(task);
                // Only what never ran is cancelled by now: nobody else has the handle.
                if task.is_finished()
                    && let Some(Err(error)) = futures_util::FutureExt::now_or_never(task)
                    && error.is_cancelled()
                {
                    return Err(Self::gone());
                }
            }
        }
        Ok(())
    }

    /// What to say when tasks are dropped by their executor.
    pub(crate) fn gone() -> Error {
        Error::broker("run jobs on", "tokio", "its runtime has shut down")
    }

    /// Waits for `delay`, never less.
    pub(crate) async fn sleep(&self, delay: Duration) {
        match &self.0 {
            #[cfg(feature = "async-global-executor")]
            Kind::Global => drop(async_io::Timer::after(delay).await),
            #[cfg(feature = "smol")]
            Kind::Smol => drop(async_io::Timer::after(delay).await),
            #[cfg(feature = "tokio")]
            Kind::Tokio(handle) => {
                let sleep = {
                    let _entered = handle.enter();
                    tokio::time::sleep(delay)
                };
                sleep.await;
            }
        }
    }

    /// The answer of `work`, or `None` and `work` dropped when it takes longer than `limit`.
    pub(crate) async fn timeout<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        before(self.sleep(limit), work).await
    }
}

/// The answer of `work`, or `None` and `work` dropped when `end` comes first.
async fn before<T>(end: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    future::or(async { Some(work.await) }, async {
        end.await;
        None
    })
    .await
}

impl Default for Runtime {
    #[allow(
        unreachable_code,
        reason = "the first runtime that is built in returns"
    )]
    fn default() -> Self {
        #[cfg(feature = "tokio")]
        if let Ok(handle) = tokio::runtime::Handle::try_current() {
            return Self::tokio_handle(handle);
        }
        #[cfg(feature = "async-global-executor")]
        return Self::async_global_executor();
        #[cfg(feature = "smol")]
        return Self::smol();
        #[cfg(feature = "tokio")]
        panic!("Runtime::default() needs a current tokio runtime when no other is built in");
        unreachable!("a build without a runtime does not compile");
    }
}
