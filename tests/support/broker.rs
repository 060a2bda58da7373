//! [`Broker`]: the real one, as an operator sees it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_rs::Runtime as LapinRuntime;
use futures_lite::future;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    message::BasicGetMessage,
    options::*,
    types::{AMQPValue, FieldTable},
};
use queuey_rabbitmq::{
    Envelope, QueueConfig, RabbitMqBackend, RabbitMqOptions, Runtime, Uuid, lapin,
};

/// A broker, the queues a test made on it, and a connection of the test's own to look at them.
#[derive(Clone)]
pub struct Broker {
    pub url: String,
    pub runtime: Runtime,
    connection: Arc<Mutex<Arc<Connection>>>,
    queues: Arc<Mutex<Vec<String>>>,
    commands: Arc<Mutex<Vec<Vec<String>>>>,
}

/// A message as it lies on a queue.
#[derive(Debug, Clone)]
pub struct Message {
    pub body: Vec<u8>,
    pub properties: BasicProperties,
    pub redelivered: bool,
}

impl Broker {
    pub async fn connect(url: String, runtime: Runtime) -> Self {
        let connection = dial(&url).await;
        Self {
            url,
            runtime,
            connection: Arc::new(Mutex::new(connection.into())),
            queues: Arc::default(),
            commands: Arc::default(),
        }
    }

    /// A backend with default options.
    pub async fn backend(&self) -> RabbitMqBackend {
        self.backend_with(RabbitMqOptions::new()).await
    }

    /// A backend on the runtime of the test.
    pub async fn backend_with(&self, options: RabbitMqOptions) -> RabbitMqBackend {
        let options = options.runtime(self.runtime.clone());
        RabbitMqBackend::with_options(&self.url, options)
            .await
            .expect("the broker lets us in")
    }

    /// A queue of the test's own, not declared yet; removed after it, dead letters included.
    pub fn queue(&self) -> QueueConfig {
        QueueConfig::new(self.name())
    }

    /// A queue name of the test's own; removed after it, dead letters included.
    pub fn name(&self) -> String {
        let name = format!("test.{}", Uuid::new_v4().simple());
        self.remove_later(&name);
        self.remove_later(&format!("{name}.dead"));
        name
    }

    /// Removes `queue` after the test. Hold queues of short waits go by themselves.
    pub fn remove_later(&self, queue: &str) {
        self.queues.lock().unwrap().push(queue.into());
    }

    /// Runs `rabbitmqctl` with these arguments after the test.
    pub fn ctl_later(&self, arguments: &[&str]) {
        let command = arguments.iter().map(|&argument| argument.into()).collect();
        self.commands.lock().unwrap().push(command);
    }

    /// The answer of `work` on a channel of its own. lapin ends the connection now and then when it
    /// is left to close a channel itself.
    async fn on_channel<T>(
        &self,
        work: impl AsyncFnOnce(&Channel) -> lapin::Result<T>,
    ) -> lapin::Result<T> {
        let channel = self.channel().await;
        let answer = work(&channel).await;
        let _ = channel.close(200, "done".into()).await;
        answer
    }

    /// A channel; on a new connection, if a test has ended the last.
    pub async fn channel(&self) -> Channel {
        let mut connection = self.connection();
        if !connection.status().connected() {
            connection = Arc::new(dial(&self.url).await);
            *self.connection.lock().unwrap() = connection.clone();
        }
        connection.create_channel().await.unwrap()
    }

    fn connection(&self) -> Arc<Connection> {
        self.connection.lock().unwrap().clone()
    }

    /// How many messages lie on `queue`, ready; `None` when there is no such queue.
    pub async fn ready(&self, queue: &str) -> Option<u32> {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let found = self.on_channel(async |channel| {
            let answer = channel.queue_declare(queue.into(), passive, FieldTable::default());
            answer.await.map(|queue| queue.message_count())
        });
        found.await.ok()
    }

    /// Takes the first message off `queue`.
    pub async fn take(&self, queue: &str) -> Option<Message> {
        let options = BasicGetOptions { no_ack: true };
        let got = self.on_channel(async |channel| channel.basic_get(queue.into(), options).await);
        let BasicGetMessage { delivery, .. } = got.await.unwrap()?;
        Some(Message {
            body: delivery.data,
            properties: delivery.properties,
            redelivered: delivery.redelivered,
        })
    }

    /// Declares `queue` as another application would.
    pub async fn declare(&self, queue: &str, arguments: &[(&str, AMQPValue)]) {
        self.try_declare(queue, true, arguments).await.unwrap();
    }

    /// What the broker answers to another application that declares `queue`.
    pub async fn try_declare(
        &self,
        queue: &str,
        durable: bool,
        arguments: &[(&str, AMQPValue)],
    ) -> lapin::Result<()> {
        let options = QueueDeclareOptions {
            durable,
            ..QueueDeclareOptions::default()
        };
        let mut table = FieldTable::default();
        for (name, value) in arguments {
            table.insert((*name).into(), value.clone());
        }
        self.on_channel(async |channel| {
            let declared = channel.queue_declare(queue.into(), options, table);
            declared.await.map(drop)
        })
        .await
    }

    pub async fn delete(&self, queue: &str) {
        let options = QueueDeleteOptions::default();
        let _ = self
            .on_channel(async |channel| channel.queue_delete(queue.into(), options).await)
            .await;
    }

    /// Publishes bytes as another application would; confirmed.
    pub async fn publish(&self, queue: &str, body: &[u8], properties: BasicProperties) {
        let options = BasicPublishOptions::default();
        let confirm = self.on_channel(async |channel| {
            channel
                .confirm_select(ConfirmSelectOptions::default())
                .await?;
            let confirm = channel.basic_publish("".into(), queue.into(), options, body, properties);
            confirm.await?.await
        });
        assert!(confirm.await.unwrap().is_ack());
    }

    pub async fn clean_up(&self) {
        let queues = std::mem::take(&mut *self.queues.lock().unwrap());
        for queue in queues {
            super::within("a deleted queue", self.delete(&queue)).await;
        }
        let commands = std::mem::take(&mut *self.commands.lock().unwrap());
        for command in commands {
            self.ctl(&command.iter().map(String::as_str).collect::<Vec<_>>());
        }
        // lapin does not always tell that it has closed.
        let connection = self.connection();
        let closed = async { drop(connection.close(200, "done".into()).await) };
        future::or(closed, super::pause(Duration::from_secs(5))).await;
    }
}

async fn dial(url: &str) -> Connection {
    let runtime = LapinRuntime::async_global_executor();
    Connection::connect_with_runtime(url, ConnectionProperties::default(), runtime)
        .await
        .expect("AMQP_URL leads to a broker")
}

impl Message {
    pub fn envelope(&self) -> Envelope {
        Envelope::from_bytes(&self.body).unwrap()
    }

    /// The header as text, whatever its AMQP type.
    pub fn header(&self, name: &str) -> Option<String> {
        match self.properties.headers().as_ref()?.inner().get(name)? {
            AMQPValue::LongString(text) => Some(text.to_string()),
            AMQPValue::LongUInt(number) => Some(number.to_string()),
            other => panic!("header `{name}` is {other:?}"),
        }
    }
}
