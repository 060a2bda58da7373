//! The AMQP client's own thread: no handler, however badly behaved, can starve its heartbeats.

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpStream},
    panic,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};

use async_executor::Executor;
use async_io::Async;
use async_rs::{
    AsyncIO,
    traits::{Executor as Execute, Reactor},
    util::{RuntimeParts, Task, TaskImpl},
};
use futures_lite::future;

use super::{before, wire::Wires};

/// The client's executor as lapin takes it.
type ClientRuntime = async_rs::Runtime<RuntimeParts<Client, Wires>>;

/// A handle on the client's thread, which all backends of the process share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(&'static Executor<'static>);

/// Starts the client's thread when it is first asked for.
pub(crate) fn client() -> Client {
    static EXECUTOR: Executor<'static> = Executor::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    THREAD.get_or_init(|| {
        thread::Builder::new()
            .name("queuey-amqp".into())
            .spawn(|| {
                // A panic in one task ends `run`; the other tasks go on in the next.
                while panic::catch_unwind(|| {
                    async_io::block_on(EXECUTOR.run(future::pending::<()>()));
                })
                .is_err()
                {}
            })
            .expect("the system can start a thread");
    });
    Client(&EXECUTOR)
}

impl Client {
    pub(crate) fn runtime(self) -> ClientRuntime {
        async_rs::Runtime::new(RuntimeParts::new(self, Wires))
    }

    /// A TCP connection to the first of `addresses` that answers.
    pub(crate) async fn connect(self, addresses: Vec<SocketAddr>) -> io::Result<Async<TcpStream>> {
        AsyncIO.tcp_connect(addresses).await
    }

    /// Runs `task` on the client's thread. It must never block.
    pub(crate) fn run(self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(boxed(task)).detach();
    }

    pub(crate) async fn sleep(self, delay: Duration) {
        async_io::Timer::after(delay).await;
    }

    /// Waits for `moment`; for none, not at all.
    pub(crate) async fn sleep_until(self, moment: Option<Instant>) {
        if let Some(moment) = moment.filter(|moment| *moment > Instant::now()) {
            async_io::Timer::at(moment).await;
        }
    }

    /// The answer of `work`, or `None` and `work` dropped when it takes longer than `limit`.
    pub(crate) async fn timeout<T>(
        self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        before(self.sleep(limit), work).await
    }
}

impl Execute for Client {
    type Task<T: Send + 'static> = ClientTask<T>;

    fn block_on<T, F: Future<Output = T>>(&self, work: F) -> T {
        async_io::block_on(work)
    }

    fn spawn<T, F>(&self, work: F) -> Task<Self::Task<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        ClientTask(Some(self.0.spawn(boxed(work)))).into()
    }

    fn spawn_blocking<T, F>(&self, work: F) -> Task<Self::Task<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        ClientTask(Some(blocking::unblock(work))).into()
    }
}

/// The executor's code is there once for all tasks, not once for each kind: that is 100s of KB.
fn boxed<T>(
    task: impl Future<Output = T> + Send + 'static,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(task)
}

/// A task that goes on when its handle is dropped, as lapin expects.
#[derive(Debug)]
pub(crate) struct ClientTask<T>(Option<async_executor::Task<T>>);

#[async_trait::async_trait]
impl<T: Send + 'static> TaskImpl for ClientTask<T> {
    async fn cancel(&mut self) -> Option<T> {
        self.0.take()?.cancel().await
    }

    fn detach(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}

impl<T> Future for ClientTask<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let task = self.0.as_mut().expect("a cancelled task is not polled");
        Pin::new(task).poll(cx)
    }
}
