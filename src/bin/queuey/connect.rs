//! [`Connect`]: the options of every command.

use clap::Args;
use queuey_rabbitmq::{Addresses, RabbitMqOptions, admin::Admin, topology};

use crate::failure::Failure;

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
        let list: Vec<_> = self.url.split(',').map(str::trim).collect();
        let options = RabbitMqOptions::new()
            .connection_name("queuey")
            // The broker knows its own.
            .max_message_size(usize::MAX)
            .dead_suffix(&self.dead_suffix)
            .deferred_suffix(&self.deferred_suffix);
        Ok(Admin::connect(Addresses::try_from(&list[..])?, options).await?)
    }
}
