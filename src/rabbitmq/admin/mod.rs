//! [`Admin`]: what an operator does to queues by AMQP alone; the feature `cli`.

mod check;
mod differences;
mod headers;
mod letter;
mod pass;
mod rewrite;
mod trace;

use std::time::Duration;

use lapin::{options::QueueDeclareOptions, types::FieldTable};

pub use check::{Publishing, Right, Terms};
pub use differences::Difference;
pub use headers::arguments_json;
pub use letter::Letter;
pub use pass::Pass;
pub use rewrite::{with_attempt, with_queue};
pub use trace::{Passage, Trace, Traced};

use check::{NOT_FOUND, refusal};

use super::{
    Addresses, RabbitMqBackend, RabbitMqOptions,
    channel::OpenChannel,
    codec, declare_ladders,
    message::{Compose, Message, Route},
    version,
};
use crate::{
    Backend, Envelope, Error, QueueConfig, QueueKind, Result, limits::check_name, runtime::client,
};

/// Looks at queues and moves what lies on them. It declares nothing that jobs are consumed from.
#[derive(Debug, Clone)]
pub struct Admin(RabbitMqBackend);

/// What AMQP tells of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Depth {
    /// Messages that wait for a consumer.
    pub ready: u32,
    /// Consumers, of whatever application.
    pub consumers: u32,
}

impl Admin {
    /// Connects. A lost connection does not come back: what was in hand is back on its queue, and
    /// the operator decides what next.
    pub async fn connect(addresses: Addresses, options: RabbitMqOptions) -> Result<Self> {
        let options = options.reconnect(None);
        let backend = RabbitMqBackend::with_options(addresses, options).await?;
        Ok(Self(backend))
    }

    /// The backend below, to publish with.
    pub fn backend(&self) -> &RabbitMqBackend {
        &self.0
    }

    /// What AMQP tells of `queue`; `None` when there is no such queue.
    pub async fn depth(&self, queue: &str) -> Result<Option<Depth>> {
        check_name(queue)?;
        let live = self.live("look at", queue).await?;
        // Of its own: the broker closes it when there is no such queue.
        let channel = OpenChannel::new(live.clone(), "look at", queue).await?;
        let asked = async {
            let passive = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            let declared = channel.queue_declare(queue.into(), passive, FieldTable::default());
            match declared.await {
                Ok(found) => Ok(Some(Depth {
                    ready: found.message_count(),
                    consumers: found.consumer_count(),
                })),
                Err(error) => match refusal(&error) {
                    Some((NOT_FOUND, _)) => Ok(None),
                    _ => Err(error),
                },
            }
        };
        live.ask("look at", queue, asked).await
    }

    /// One pass over what lies on `queue` now; `None` when there is no such queue.
    pub async fn pass(&self, queue: &str) -> Result<Option<Pass>> {
        match self.depth(queue).await? {
            Some(depth) => Pass::start(self.clone(), queue, depth.ready)
                .await
                .map(Some),
            None => Ok(None),
        }
    }

    /// Copies of what is handed to consumers of `queue` from now on and, with `published`, of what
    /// is published to it. They come while the broker's operator has tracing on.
    pub async fn trace(&self, queue: &str, published: bool) -> Result<Trace> {
        Trace::start(self, queue, published).await
    }

    /// Takes `queue` for declared as this, so that jobs can wait for it; only what quorum queues
    /// share for their waits is declared.
    ///
    /// # Errors
    /// Also for a quorum queue on RabbitMQ before 4.0.
    pub async fn assume(&self, queue: &QueueConfig) -> Result<()> {
        let inner = self.0.open()?;
        if queue.kind == QueueKind::Quorum {
            let live = self.live("hold a job for", &queue.name).await?;
            version::check_quorum(&queue.name, live.returns.version())?;
            declare_ladders::attach(&live, &queue.name).await?;
        }
        inner.declared.assume(queue);
        Ok(())
    }

    /// Publishes the dead job `letter` to its own queue, as attempt 1 or as the one it died at.
    ///
    /// # Errors
    /// When the body is not a job, and as any publish: confirmed and mandatory.
    pub async fn replay(&self, letter: &Letter, keep_attempt: bool) -> Result<()> {
        let job = letter.job("replay")?;
        let body = match keep_attempt {
            true => letter.body.clone(),
            false => changed("replay", &job.queue, with_attempt(&letter.body, 1))?,
        };
        self.publish_job(&job.queue, letter, body).await
    }

    /// Publishes a copy of `letter` to `queue`. A job names `queue` as its own from then on.
    ///
    /// # Errors
    /// As any publish: confirmed and mandatory.
    pub async fn copy(&self, letter: &Letter, queue: &str) -> Result<()> {
        if letter.envelope.is_none() {
            let properties = letter.properties().clone();
            return self
                .publish(queue, &|| Message {
                    properties: properties.clone(),
                    body: letter.body.clone(),
                })
                .await;
        }
        let body = changed("move a job to", queue, with_queue(&letter.body, queue))?;
        self.publish_job(queue, letter, body).await
    }

    async fn publish_job(&self, queue: &str, letter: &Letter, body: Vec<u8>) -> Result<()> {
        let job = changed("publish to", queue, Envelope::from_bytes(&body))?;
        let properties = codec::revived_properties(letter.properties(), &job);
        self.publish(queue, &|| Message {
            properties: properties.clone(),
            body: body.clone(),
        })
        .await
    }

    async fn publish(&self, queue: &str, message: Compose<'_>) -> Result<()> {
        let publisher = &self.0.open()?.publisher;
        publisher.publish(Route::to(queue)?, message).await
    }

    /// Waits, on whatever runtime the caller is.
    pub async fn pause(&self, duration: Duration) {
        client().sleep(duration).await;
    }

    /// Closes the connections.
    pub async fn close(&self) -> Result<()> {
        self.0.close().await
    }
}

fn changed<T>(
    action: &'static str,
    queue: &str,
    result: std::result::Result<T, serde_json::Error>,
) -> Result<T> {
    result.map_err(|error| Error::broker(action, queue, error))
}
