//! Declaring queues, on throwaway channels (or connections), and again when a connection is new.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;

use super::{
    Addresses, RabbitMqOptions,
    channel::OpenChannel,
    connection, declare_ladders,
    live::Live,
    lock,
    methods::declare_queue,
    topology::{self, Declaration},
    version,
};
use crate::{Error, QueueConfig, QueueKind, Result};

/// What a backend has declared.
#[derive(Debug)]
pub(super) struct Declared {
    addresses: Addresses,
    options: Arc<RabbitMqOptions>,
    queues: Mutex<HashMap<String, QueueConfig>>,
}

impl Declared {
    pub(super) fn new(addresses: Addresses, options: Arc<RabbitMqOptions>) -> Self {
        Self {
            addresses,
            options,
            queues: Mutex::default(),
        }
    }

    /// The kind of `queue` and whether it is durable, if it was declared.
    pub(super) fn kind(&self, queue: &str) -> Option<(QueueKind, bool)> {
        lock(&self.queues)
            .get(queue)
            .map(|queue| (queue.kind, queue.durable))
    }

    /// How `queue` was declared, if it was.
    pub(super) fn config(&self, queue: &str) -> Option<QueueConfig> {
        lock(&self.queues).get(queue).cloned()
    }

    /// Declares `queue`, its dead-letter queue and what it needs to wait.
    pub(super) fn declare<'a>(
        &'a self,
        live: &'a Arc<Live>,
        queue: &'a QueueConfig,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let is_quorum = queue.kind == QueueKind::Quorum;
            if is_quorum {
                version::check_quorum(&queue.name, live.returns.version())?;
            }
            let dead = self.options.declare_dead_letter_queues;
            let dead = dead.then(|| topology::dead_queue(queue, &self.options.dead_suffix));
            let dead_name = dead.as_ref().map(|dead| dead.name.as_str());
            let mut declarations = vec![topology::main_queue(queue, dead_name)];
            declarations.extend(dead);
            if queue.durable {
                declare_all(live, &declarations).await?;
            } else {
                self.declare_apart(&declarations).await?;
            }
            if is_quorum {
                declare_ladders::attach(live, &queue.name).await?;
            }
            self.assume(queue);
            Ok(())
        })
    }

    /// Takes `queue` for declared like this.
    pub(super) fn assume(&self, queue: &QueueConfig) {
        lock(&self.queues).insert(queue.name.clone(), queue.clone());
    }

    /// Declares everything once more: the broker may have come back without it.
    pub(super) async fn again(&self, live: &Arc<Live>) {
        let queues: Vec<_> = lock(&self.queues).values().cloned().collect();
        for queue in queues {
            if let Err(error) = self.declare(live, &queue).await {
                log::error!("cannot declare `{}` again: {}", queue.name, error.chain());
            }
        }
    }

    /// On a connection of its own: where queues that are not durable are denied, the broker closes
    /// the connection that asks for one.
    async fn declare_apart(&self, queues: &[Declaration]) -> Result<()> {
        let live: Arc<_> = connection::dial_any(&self.addresses, &self.options)
            .await?
            .into();
        let declared = declare_all(&live, queues).await;
        connection::hang_up(&live).await;
        declared.map_err(|error| match error {
            Error::Disconnected {
                action,
                subject,
                source,
            } => Error::broker(action, subject, source),
            other => other,
        })
    }
}

/// Declares `queues` one after another on a channel of their own, which a refusal closes.
async fn declare_all(live: &Arc<Live>, queues: &[Declaration]) -> Result<()> {
    let [first, ..] = queues else {
        return Ok(());
    };
    let channel = OpenChannel::new(live.clone(), "declare", &first.name).await?;
    for queue in queues {
        let declared = declare_queue(&channel, queue);
        live.ask("declare", &queue.name, declared).await?;
    }
    Ok(())
}

/// Whether `error` is the refusal of another queue than this.
pub(super) fn is_about_another(error: &Error, queue: &str) -> bool {
    match error {
        Error::Precondition { source, .. } => !source.to_string().contains(&format!("'{queue}'")),
        _ => false,
    }
}
