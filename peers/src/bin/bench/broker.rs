//! [`Broker`]: the queues, prepared before a measurement, checked and deleted after it.

use std::{
    env, process,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use async_global_executor::block_on;
use lapin::{
    Connection,
    options::{QueueDeclareOptions, QueueDeleteOptions},
    types::FieldTable,
};
use peers::bench::{Failure, Mail, wire};

/// Publishes in flight when a queue is filled.
const WINDOW: u64 = 512;

pub(crate) struct Broker {
    pub(crate) url: String,
    connection: Connection,
    queues: AtomicU64,
}

impl Broker {
    pub(crate) fn connect() -> Result<Self, Failure> {
        let url = env::var("AMQP_URL").map_err(|_| "AMQP_URL names no broker")?;
        Ok(Self {
            connection: block_on(wire::connect(&url))?,
            url,
            queues: AtomicU64::new(0),
        })
    }

    /// A name no other queue has.
    pub(crate) fn queue(&self) -> String {
        let number = self.queues.fetch_add(1, Ordering::Relaxed);
        format!("bench.{}.{number:03}", process::id())
    }

    /// Declares `queue` and puts so many jobs on it.
    pub(crate) fn fill(&self, queue: &str, jobs: u64, priorities: u8) -> Result<(), Failure> {
        block_on(async {
            let channel = wire::confirmed(&self.connection).await?;
            wire::declare(&channel, queue, priorities).await?;
            let message = wire::Message::new(queue, &Mail::new())?;
            message.publish_all(&channel, jobs, WINDOW).await?;
            Ok(channel.close(200, "filled".into()).await?)
        })
    }

    /// Fails unless so many jobs are on `queue`; those of a connection that ends come back late.
    pub(crate) fn expect(&self, queue: &str, jobs: u64) -> Result<(), Failure> {
        let mut found = 0;
        for _ in 0..30 {
            found = self.ready(queue)?;
            if found == jobs {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err(format!("{found} jobs on {queue}, not {jobs}").into())
    }

    fn ready(&self, queue: &str) -> Result<u64, Failure> {
        block_on(async {
            let channel = self.connection.create_channel().await?;
            let options = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            let declared = channel
                .queue_declare(queue.into(), options, FieldTable::default())
                .await?;
            channel.close(200, "counted".into()).await?;
            Ok(declared.message_count().into())
        })
    }

    /// Deletes `queue` and what the libraries declare beside it.
    pub(crate) fn delete(&self, queue: &str) -> Result<(), Failure> {
        block_on(async {
            let channel = self.connection.create_channel().await?;
            for suffix in ["", ".dead", ".deferred.1000"] {
                let name = format!("{queue}{suffix}");
                let options = QueueDeleteOptions::default();
                channel.queue_delete(name.into(), options).await?;
            }
            Ok(channel.close(200, "deleted".into()).await?)
        })
    }
}
