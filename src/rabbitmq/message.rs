//! [`Message`] and [`Route`]: what is published, and how it gets to its queue.

use lapin::{BasicProperties, types::ShortString};

use crate::{Result, limits::check_name};

/// How a message gets to its queue.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) exchange: ShortString,
    pub(super) key: ShortString,
    /// Where the key is not its name.
    queue: Option<String>,
    /// Whether what is too large is refused here, before the broker closes the channel for it.
    pub(super) limited: bool,
}

impl Route {
    /// Straight to `queue`.
    pub(super) fn to(queue: &str) -> Result<Self> {
        check_name(queue)?;
        Ok(Self {
            exchange: "".into(),
            key: queue.into(),
            queue: None,
            limited: true,
        })
    }

    /// Straight to `queue`, whatever the size: it came from this broker.
    pub(super) fn back_to(queue: &str) -> Result<Self> {
        Ok(Self {
            limited: false,
            ..Self::to(queue)?
        })
    }

    /// By way of `exchange`.
    pub(super) fn by(exchange: &str, key: &str, queue: &str) -> Self {
        Self {
            exchange: exchange.into(),
            key: key.into(),
            queue: Some(queue.into()),
            limited: true,
        }
    }

    pub(super) fn queue(&self) -> &str {
        self.queue.as_deref().unwrap_or(self.key.as_str())
    }
}

/// What is published.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) properties: BasicProperties,
    pub(super) body: Vec<u8>,
}

/// Makes a message, again for each time it is published.
pub(super) type Compose<'a> = &'a (dyn Fn() -> Message + Sync);
