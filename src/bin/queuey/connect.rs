//! [`Connect`]: the options of every command.

use clap::Args;
#[cfg(unix)]
use queuey_rabbitmq::RabbitMqBackend;
use queuey_rabbitmq::{Addresses, RabbitMqOptions, admin::Admin, topology};

use crate::{failure::Failure, management::Management};

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Where the broker is; several addresses of a cluster with commas in between
    #[arg(
        long,
        global = true,
        env = "AMQP_URL",
        hide_env_values = true,
        default_value = "amqp://localhost",
        value_name = "URL"
    )]
    url: String,
    /// Where the management API of the broker is, which knows what AMQP does not tell: which queues
    /// there are, what workers have in hand, policies. User and password are those of --url if it
    /// has none
    #[arg(
        long,
        global = true,
        env = "QUEUEY_MANAGEMENT_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    management_url: Option<String>,
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What follows a queue's name in its dead-letter queue's, where an application changes it
    #[arg(long, global = true, default_value = topology::DEAD_SUFFIX, value_name = "TEXT")]
    dead_suffix: String,
    /// What follows a queue's name in its hold queues', where an application changes it
    #[arg(long, global = true, default_value = topology::DEFERRED_SUFFIX, value_name = "TEXT")]
    deferred_suffix: String,
}

impl Connect {
    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        Ok(Admin::connect(self.brokers()?, self.options()).await?)
    }

    /// One that comes back after an outage.
    #[cfg(unix)]
    pub(crate) async fn backend(&self) -> Result<RabbitMqBackend, Failure> {
        let options = self.options().connection_name("queuey run");
        Ok(RabbitMqBackend::with_options(self.brokers()?, options).await?)
    }

    /// Where the broker is; displayed, without the password.
    pub(crate) fn brokers(&self) -> Result<Addresses, Failure> {
        let list: Vec<_> = self.addresses().collect();
        Ok(Addresses::try_from(&list[..])?)
    }

    /// The management API, if it is known where that is.
    pub(crate) fn management(&self) -> Result<Option<Management>, Failure> {
        let first = self.addresses().next().unwrap_or_default();
        let new = |url| Management::new(url, first).map_err(Failure::Usage);
        self.management_url.as_deref().map(new).transpose()
    }

    fn addresses(&self) -> impl Iterator<Item = &str> {
        self.url.split(',').map(str::trim)
    }

    fn options(&self) -> RabbitMqOptions {
        RabbitMqOptions::new()
            .connection_name("queuey")
            // The broker knows its own.
            .max_message_size(usize::MAX)
            .dead_suffix(&self.dead_suffix)
            .deferred_suffix(&self.deferred_suffix)
    }
}
