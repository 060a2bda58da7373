//! Dialling: one TCP connection and its handshake, within a limit.

use std::time::Duration;

use futures_lite::future;
use lapin::Connection;

use super::{Address, RabbitMqOptions, error::connecting};
use crate::{Error, Result, runtime::client};

/// A new connection to `address`.
pub(super) async fn dial(address: &Address, options: &RabbitMqOptions) -> Result<Connection> {
    if address.is_tls() && !cfg!(feature = "__tls") {
        // The layers below would speak plain text and log in.
        return Err(Error::TlsNotBuiltIn(address.to_string()));
    }
    let mut properties = options.connection_properties.clone();
    if let Some(name) = &options.connection_name {
        properties = properties.with_connection_name(name.as_str().into());
    }
    let dialled = Connection::connect_uri_with_config(
        address.uri().clone(),
        properties,
        options.tls.config(),
        client().runtime(),
    );
    let subject = address.to_string();
    within(options.connect_timeout, dialled)
        .await
        .ok_or_else(|| Error::TimedOut {
            action: "connect to",
            subject: subject.clone(),
            limit: options.connect_timeout,
        })?
        .map_err(connecting(&subject))
}

/// Closes `connection`, or gives up after some seconds: a blocked broker never answers.
pub(super) async fn hang_up(connection: &Connection) {
    const LIMIT: Duration = Duration::from_secs(5);
    if connection.status().connected() {
        let closed = within(LIMIT, connection.close(200, "closed".into())).await;
        log::debug!("connection closed: {closed:?}");
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    future::or(async { Some(work.await) }, async {
        client().sleep(limit).await;
        None
    })
    .await
}
