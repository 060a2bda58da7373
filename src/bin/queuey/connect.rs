//! [`Connect`]: the options of every command.

use std::{fs, path::PathBuf};

use clap::Args;
#[cfg(unix)]
use queuey_rabbitmq::RabbitMqBackend;
use queuey_rabbitmq::{Addresses, RabbitMqOptions, Tls, admin::Admin, topology};

use crate::{failure::Failure, management::Management};

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection and output")]
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
    /// Trust the certificates in this PEM file too; of an https:// management API, these alone
    #[arg(long, global = true, env = "QUEUEY_TLS_CA", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Show an amqps:// broker the certificate in this PEM file
    #[arg(long, global = true, env = "QUEUEY_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert: PKCS#8 in a PEM file, not encrypted
    #[arg(long, global = true, env = "QUEUEY_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What follows a queue's name in its dead-letter queue's, where an application changes it
    #[arg(
        long,
        global = true,
        env = "QUEUEY_DEAD_SUFFIX",
        default_value = topology::DEAD_SUFFIX,
        value_name = "TEXT"
    )]
    dead_suffix: String,
    /// What follows a queue's name in its hold queues', where an application changes it
    #[arg(
        long,
        global = true,
        env = "QUEUEY_DEFERRED_SUFFIX",
        default_value = topology::DEFERRED_SUFFIX,
        value_name = "TEXT"
    )]
    deferred_suffix: String,
}

impl Connect {
    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        Ok(Admin::connect(self.brokers()?, self.options()?).await?)
    }

    /// One that comes back after an outage.
    #[cfg(unix)]
    pub(crate) async fn backend(&self) -> Result<RabbitMqBackend, Failure> {
        let options = self.options()?.connection_name("queuey run");
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
        let Some(url) = &self.management_url else {
            return Ok(None);
        };
        let ca = self.tls_ca.as_ref().map(read).transpose()?;
        let api = Management::new(url, first, ca.as_deref());
        Ok(Some(api.map_err(Failure::Usage)?))
    }

    fn addresses(&self) -> impl Iterator<Item = &str> {
        self.url.split(',').map(str::trim)
    }

    fn options(&self) -> Result<RabbitMqOptions, Failure> {
        Ok(RabbitMqOptions::new()
            .tls(self.tls()?)
            .connection_name("queuey")
            // The broker knows its own.
            .max_message_size(usize::MAX)
            .dead_suffix(&self.dead_suffix)
            .deferred_suffix(&self.deferred_suffix))
    }

    fn tls(&self) -> Result<Tls, Failure> {
        let mut tls = Tls::new();
        if let Some(file) = &self.tls_ca {
            tls = tls.ca_pem(read(file)?);
        }
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(tls.client_pem(read(certificate)?, read(key)?)),
            (None, None) => Ok(tls),
            _ => Err(Failure::Usage(
                "--tls-cert and --tls-key go together".into(),
            )),
        }
    }
}

/// What is in a PEM file, which is text.
fn read(file: &PathBuf) -> Result<String, Failure> {
    let bad = |error| Failure::Usage(format!("cannot read {}: {error}", file.display()));
    fs::read_to_string(file).map_err(bad)
}
