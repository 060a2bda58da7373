//! Declaring queues, on throwaway channels (or connections).

use std::sync::Arc;

use lapin::{Channel, Connection, ErrorKind, options::QueueDeclareOptions};

use super::{Address, RabbitMqOptions, connection, error::broker, topology::Declaration};
use crate::{Error, Result};

/// Declares `queues` one after another on a channel of their own, which a refusal closes.
pub(super) async fn declare(connection: &Connection, queues: &[Declaration]) -> Result<()> {
    let [first, ..] = queues else {
        return Ok(());
    };
    let channel = open(connection, &first.name).await?;
    for queue in queues {
        declare_on(&channel, queue)
            .await
            .map_err(broker("declare", &queue.name))?;
    }
    Ok(())
}

/// Like [`declare`], on a connection of its own: where queues that are not durable are denied, the
/// broker closes the connection that asks for one.
pub(super) async fn declare_apart(
    address: &Address,
    options: &RabbitMqOptions,
    queues: &[Declaration],
) -> Result<()> {
    let connection = connection::dial(address, options, Arc::default()).await?;
    let declared = declare(&connection, queues).await;
    connection::hang_up(&connection).await;
    declared.map_err(|error| match error {
        Error::Disconnected {
            action,
            subject,
            source,
        } => Error::broker(action, subject, source),
        other => other,
    })
}

pub(super) async fn open(connection: &Connection, queue: &str) -> Result<Channel> {
    connection
        .create_channel()
        .await
        .map_err(broker("declare", queue))
}

pub(super) async fn declare_on(channel: &Channel, queue: &Declaration) -> lapin::Result<()> {
    let options = QueueDeclareOptions {
        durable: queue.durable,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.name.as_str().into(), options, queue.arguments.clone())
        .await
        .map(drop)
}

/// Whether `error` is the refusal of this very queue.
pub(super) fn is_about(error: &lapin::Error, queue: &str) -> bool {
    match error.kind() {
        ErrorKind::ProtocolError(answer) => answer
            .get_message()
            .as_str()
            .contains(&format!("'{queue}'")),
        _ => false,
    }
}
