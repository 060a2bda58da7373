//! Bare lapin: what `bench-raw` measures, and how `bench` fills, counts and deletes queues.

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::stream::{FuturesUnordered, StreamExt};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, ShortString},
};

use super::{Failure, JOB_TYPE, Mail};

/// A job id of the length of a job id.
const ID: &str = "6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab";

/// Connects as lapin does by default on async-global-executor.
///
/// # Errors
/// lapin's.
pub async fn connect(url: &str) -> Result<Connection, Failure> {
    let runtime = async_rs::Runtime::async_global_executor();
    let properties = ConnectionProperties::default();
    Ok(Connection::connect_with_runtime(url, properties, runtime).await?)
}

/// A channel on which publishes are confirmed.
///
/// # Errors
/// lapin's.
pub async fn confirmed(connection: &Connection) -> Result<Channel, Failure> {
    let channel = connection.create_channel().await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    Ok(channel)
}

/// Declares `queue` as both libraries do.
///
/// # Errors
/// lapin's.
pub async fn declare(channel: &Channel, queue: &str, priorities: u8) -> Result<(), Failure> {
    let mut arguments = FieldTable::default();
    if priorities > 0 {
        arguments.insert(
            "x-max-priority".into(),
            AMQPValue::ShortShortUInt(priorities),
        );
    }
    let options = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.into(), options, arguments)
        .await?;
    Ok(())
}

/// A message as both libraries publish it.
#[derive(Debug, Clone)]
pub struct Message {
    queue: ShortString,
    body: Vec<u8>,
    properties: BasicProperties,
}

impl Message {
    /// The first attempt of `mail` on `queue`.
    ///
    /// # Errors
    /// When it does not serialize.
    pub fn new(queue: &str, mail: &Mail) -> Result<Self, Failure> {
        let payload = serde_json::to_string(mail)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let body = format!(
            r#"{{"job_id":"{ID}","job_type":"{JOB_TYPE}","queue":"{queue}","attempt":1,"enqueued_at_ms":{now},"deferrals":0,"priority":0,"payload":{payload}}}"#
        );
        let mut headers = FieldTable::default();
        headers.insert("x-attempt".into(), AMQPValue::LongUInt(1));
        headers.insert("x-deferrals".into(), AMQPValue::LongUInt(0));
        let properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_delivery_mode(2)
            .with_message_id(ID.into())
            .with_type(JOB_TYPE.into())
            .with_priority(0)
            .with_headers(headers);
        Ok(Self {
            queue: queue.into(),
            body: body.into(),
            properties,
        })
    }

    /// The size of its body.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// Publishes it, and waits until the broker has it.
    ///
    /// # Errors
    /// lapin's, or that the broker has it not.
    pub async fn publish(&self, channel: &Channel) -> Result<(), Failure> {
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let (queue, properties) = (self.queue.clone(), self.properties.clone());
        let confirm = channel
            .basic_publish("".into(), queue, options, &self.body, properties)
            .await?;
        match confirm.await? {
            Confirmation::Ack(None) => Ok(()),
            other => Err(format!("not stored: {other:?}").into()),
        }
    }

    /// Publishes it so many times, `window` of them in flight at any time.
    ///
    /// # Errors
    /// The first one's.
    pub async fn publish_all(
        &self,
        channel: &Channel,
        jobs: u64,
        window: u64,
    ) -> Result<(), Failure> {
        let mut in_flight = FuturesUnordered::new();
        for _ in 0..jobs {
            if in_flight.len() as u64 >= window
                && let Some(confirmed) = in_flight.next().await
            {
                confirmed?;
            }
            in_flight.push(self.publish(channel));
        }
        while let Some(confirmed) = in_flight.next().await {
            confirmed?;
        }
        Ok(())
    }

    /// Publishes it so many times, `batch` at once, and waits for all of a batch.
    ///
    /// # Errors
    /// The first one's.
    pub async fn publish_batches(
        &self,
        channel: &Channel,
        jobs: u64,
        batch: u64,
    ) -> Result<(), Failure> {
        let mut left = jobs;
        while left > 0 {
            let now = left.min(batch);
            self.publish_all(channel, now, now).await?;
            left -= now;
        }
        Ok(())
    }
}
