//! What the suites on a broker share: deadlines, runtimes, and a real broker.
#![allow(dead_code, unused_imports, reason = "each suite uses its part")]

mod broker;
mod ctl;
pub mod jobs;

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::ExitCode,
    time::Duration,
};

use futures_lite::future;
use libtest_mimic::{Arguments, Trial};
use queuey_rabbitmq::Runtime;

pub use broker::{Broker, Message};

/// Longer than anything a test waits for, on a busy machine too.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The most a test may take, whatever it waits for.
const LIMIT: Duration = Duration::from_secs(120);

/// The same when tests are to be thorough.
const LONG_LIMIT: Duration = Duration::from_secs(600);

/// Whether tests are to be thorough.
pub fn is_long() -> bool {
    std::env::var_os("QUEUEY_LONG").is_some_and(|value| value != "0")
}

/// Where the broker is, if there is one.
pub fn amqp_url() -> Option<String> {
    std::env::var("AMQP_URL").ok().filter(|url| !url.is_empty())
}

/// The version of the broker, where it is known.
pub fn version() -> Option<(u32, u32)> {
    let version = std::env::var("RABBITMQ_VERSION").ok()?;
    let mut numbers = version.split('.').map(|part| part.parse().unwrap());
    Some((numbers.next()?, numbers.next()?))
}

/// Runs what is chosen on the command line; says how to run what needs a broker.
pub fn run(suite: &str, trials: Vec<Trial>) -> ExitCode {
    let mut args = Arguments::from_args();
    // Tests wait more than they work.
    args.test_threads.get_or_insert(8);
    run_with(suite, &args, trials)
}

/// Runs what is chosen, one test after another: each has the broker to itself.
pub fn run_alone(suite: &str, trials: Vec<Trial>) -> ExitCode {
    let mut args = Arguments::from_args();
    args.test_threads = Some(1);
    run_with(suite, &args, trials)
}

fn run_with(suite: &str, args: &Arguments, trials: Vec<Trial>) -> ExitCode {
    let conclusion = libtest_mimic::run(args, trials);
    if amqp_url().is_none() && !args.list {
        eprintln!(
            "\nnote: the tests of `{suite}` that need RabbitMQ were ignored; run them with\n    \
             tests/with-broker cargo test --test {suite}\nor with AMQP_URL set\n"
        );
    }
    conclusion.exit_code()
}

/// A test on a real broker, ignored where there is none.
pub fn broker_trial<F>(name: String, on: On, test: impl Fn(Broker) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    let trial = Trial::test(name, move || {
        let url = amqp_url().ok_or("needs RabbitMQ: set AMQP_URL, or use tests/with-broker")?;
        let broker = future::block_on(Broker::connect(url, on.runtime()));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // Boxed: a large future that is passed on and on overflows the stack of a debug build.
            let test = Box::pin(test(broker.clone()));
            let limit = if is_long() { LONG_LIMIT } else { LIMIT };
            on.block_on(within_limit("the test", limit, test))
        }));
        future::block_on(broker.clean_up());
        outcome.unwrap_or_else(|panic| resume_unwind(panic));
        Ok(())
    });
    trial.with_ignored_flag(amqp_url().is_none())
}

/// A test on a real broker that is also its operator.
pub fn ctl_trial<F>(name: String, on: On, test: impl Fn(Broker) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    needing("RABBITMQCTL", broker_trial(name, on, test))
}

/// A test on a real broker with its management API, that is also its operator.
pub fn management_trial<F>(
    name: String,
    on: On,
    test: impl Fn(Broker) -> F + Send + 'static,
) -> Trial
where
    F: Future<Output = ()>,
{
    needing("RABBITMQ_MANAGEMENT_URL", ctl_trial(name, on, test))
}

/// A test on a real broker that also ends and starts it.
pub fn node_trial<F>(name: String, on: On, test: impl Fn(Broker) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    needing("RABBITMQ_NODE", broker_trial(name, on, test))
}

/// A test on a cluster whose nodes it ends and starts.
pub fn cluster_trial<F>(name: String, on: On, test: impl Fn(Broker) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    needing("AMQP_URLS", node_trial(name, on, test))
}

/// A test on a real broker that also listens for TLS.
pub fn tls_trial<F>(name: String, on: On, test: impl Fn(Broker) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    needing("AMQPS_URL", broker_trial(name, on, test))
}

/// A test on a real broker whose management API is also there by TLS.
pub fn https_trial<F>(name: String, on: On, test: impl Fn(Broker) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    needing("RABBITMQ_MANAGEMENT_TLS_URL", tls_trial(name, on, test))
}

/// Ignores `trials` where the broker is known to be older than that.
pub fn since(least: (u32, u32), trials: Vec<Trial>) -> Vec<Trial> {
    if version().is_none_or(|version| version >= least) {
        return trials;
    }
    let what = format!("RabbitMQ {}.{}", least.0, least.1);
    trials
        .into_iter()
        .map(|trial| needs(&what, trial))
        .collect()
}

/// Ignores `trial` where the environment lacks `variable`, and says so beside its name.
fn needing(variable: &str, trial: Trial) -> Trial {
    match std::env::var_os(variable) {
        Some(_) => trial,
        None => needs(variable, trial),
    }
}

/// Ignores `trial` for want of `what`.
fn needs(what: &str, trial: Trial) -> Trial {
    trial
        .with_kind(format!("needs {what}"))
        .with_ignored_flag(true)
}

/// The runtime a test runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    AsyncGlobalExecutor,
    Smol,
    Tokio,
    AsyncStd,
}

impl On {
    pub const ALL: [Self; 4] = [
        Self::AsyncGlobalExecutor,
        Self::Smol,
        Self::Tokio,
        Self::AsyncStd,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::AsyncGlobalExecutor => "async_global_executor",
            Self::Smol => "smol",
            Self::Tokio => "tokio",
            Self::AsyncStd => "async_std",
        }
    }

    /// What an application on this runtime hands to the library.
    pub fn runtime(self) -> Runtime {
        match self {
            Self::AsyncGlobalExecutor | Self::AsyncStd => Runtime::async_global_executor(),
            Self::Smol => Runtime::smol(),
            Self::Tokio => Runtime::tokio_handle(tokio_runtime().handle().clone()),
        }
    }

    pub fn block_on<T>(self, work: impl Future<Output = T>) -> T {
        match self {
            Self::AsyncGlobalExecutor => async_global_executor::block_on(work),
            Self::Smol => smol::block_on(work),
            Self::Tokio => tokio_runtime().block_on(work),
            Self::AsyncStd => async_std::task::block_on(work),
        }
    }
}

fn tokio_runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: std::sync::OnceLock<tokio::runtime::Runtime> = std::sync::OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().expect("tokio starts"))
}

/// Waits for `work`; fails the test, naming `what`, after [`DEADLINE`].
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    within_limit(what, DEADLINE, work).await
}

async fn within_limit<T>(what: &str, limit: Duration, work: impl Future<Output = T>) -> T {
    future::or(async { Some(work.await) }, async {
        pause(limit).await;
        None
    })
    .await
    .unwrap_or_else(|| panic!("{what}: nothing within {limit:?}"))
}

/// Waits until `holds` answers true; fails the test, naming `what`, after [`DEADLINE`].
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    within(what, async {
        while !holds().await {
            pause(Duration::from_millis(10)).await;
        }
    })
    .await;
}

pub async fn pause(duration: Duration) {
    async_io::Timer::after(duration).await;
}
