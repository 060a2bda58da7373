//! [`OpenChannel`]: a channel, and its end.

use std::{ops::Deref, sync::Arc};

use lapin::Channel;

use super::live::Live;
use crate::{Result, runtime::client};

/// A channel that is closed when it is dropped, but never while its connection is being closed.
///
/// lapin closes a channel that is dropped, too; where that meets the end of the channel or of the
/// connection, it tears the connection down, and acks that are on their way are lost.
#[derive(Debug)]
pub(super) struct OpenChannel {
    channel: Channel,
    pub(super) live: Arc<Live>,
}

impl OpenChannel {
    /// A new channel of `live`; the action and its subject are what it is for.
    pub(super) async fn new(
        live: Arc<Live>,
        action: &'static str,
        subject: &str,
    ) -> Result<Arc<Self>> {
        let opened = live.connection.create_channel();
        let channel = live.ask(action, subject, opened).await?;
        Ok(Arc::new(Self { channel, live }))
    }

    /// Whether what is written can still arrive.
    pub(super) fn carries(&self) -> bool {
        self.channel.status().connected() && !self.live.is_over()
    }
}

impl Deref for OpenChannel {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        &self.channel
    }
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        if self.carries() {
            client().run(close(self.channel.clone(), self.live.clone()));
        }
    }
}

async fn close(channel: Channel, live: Arc<Live>) {
    let _before_the_connection = live.channels_ending.read().await;
    let closed = channel.close(200, "done".into());
    let closed = live.ask("close", "a channel", closed).await;
    log::trace!("channel {} closed: {closed:?}", channel.id());
}
