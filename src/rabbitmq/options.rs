//! [`RabbitMqOptions`]: what can be tuned, and [`Tls`].

use std::{fmt, sync::Arc, time::Duration};

use lapin::{
    ConnectionProperties,
    tcp::{OwnedIdentity, OwnedTLSConfig},
};

use super::{
    BackoffPolicy, ReconnectPolicy,
    topology::{DEAD_SUFFIX, DEFERRED_SUFFIX},
};
use crate::Runtime;

/// How the backend connects and what it declares.
///
/// Suffixes and granularities are part of the topology: every process of a fleet uses the same.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RabbitMqOptions {
    /// What lapin tells the broker at the handshake. Its own recovery must stay off.
    pub connection_properties: ConnectionProperties,
    /// The name operators see; none by default.
    pub connection_name: Option<String>,
    /// How long dialling and the handshake may take together; 10 s by default.
    pub connect_timeout: Duration,
    /// How a lost connection or subscription comes back; [`BackoffPolicy`] by default, `None` for
    /// not at all.
    pub reconnect: Option<Arc<dyn ReconnectPolicy>>,
    /// Whether the first connection is tried under that policy too; `false` by default, which fails
    /// with the first attempt.
    pub wait_for_broker: bool,
    /// How long a publish may take, with its confirm, any reconnecting before and any declare of a
    /// hold queue; 30 s by default.
    pub publish_timeout: Duration,
    /// The largest body that is sent, in bytes; 16 MiB by default, as brokers have it since 4.0.
    pub max_message_size: usize,
    /// Private CA and client certificate; the system's CAs and no certificate by default.
    pub tls: Tls,
    /// What follows a queue's name in its dead-letter queue's; `.dead` by default.
    pub dead_suffix: String,
    /// Whether dead-letter queues are declared; without them a dead letter is rejected, and the
    /// operator's own dead-letter policy applies. `true` by default.
    pub declare_dead_letter_queues: bool,
    /// What follows a queue's name in its hold queues'; `.deferred` by default.
    pub deferred_suffix: String,
    /// Retries and delayed enqueues round up to this; 1 s by default, at least 1 ms. On quorum
    /// queues they go on to whole seconds.
    pub retry_granularity: Duration,
    /// Deferrals round up to this, likewise.
    pub deferred_granularity: Duration,
    /// Where workers on this backend run handlers unless told otherwise.
    pub runtime: Option<Runtime>,
}

impl Default for RabbitMqOptions {
    fn default() -> Self {
        Self {
            connection_properties: ConnectionProperties::default(),
            connection_name: None,
            connect_timeout: Duration::from_secs(10),
            reconnect: Some(Arc::new(BackoffPolicy::default())),
            wait_for_broker: false,
            publish_timeout: Duration::from_secs(30),
            max_message_size: 16 * 1024 * 1024,
            tls: Tls::default(),
            dead_suffix: DEAD_SUFFIX.into(),
            declare_dead_letter_queues: true,
            deferred_suffix: DEFERRED_SUFFIX.into(),
            retry_granularity: Duration::from_secs(1),
            deferred_granularity: Duration::from_secs(1),
            runtime: None,
        }
    }
}

impl RabbitMqOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// What lapin tells the broker at the handshake.
    pub fn connection_properties(mut self, properties: ConnectionProperties) -> Self {
        self.connection_properties = properties;
        self
    }

    /// The name operators see.
    pub fn connection_name(mut self, name: impl Into<String>) -> Self {
        self.connection_name = Some(name.into());
        self
    }

    /// How long dialling and the handshake may take together.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How a lost connection or subscription comes back; `None` for not at all.
    pub fn reconnect(mut self, policy: Option<Arc<dyn ReconnectPolicy>>) -> Self {
        self.reconnect = policy;
        self
    }

    /// How a lost connection or subscription comes back.
    pub fn reconnect_with(self, policy: impl ReconnectPolicy) -> Self {
        self.reconnect(Some(Arc::new(policy)))
    }

    /// Whether the first connection is tried under the reconnect policy too.
    pub fn wait_for_broker(mut self, wait: bool) -> Self {
        self.wait_for_broker = wait;
        self
    }

    /// How long a publish may take, with its confirm and whatever comes before it.
    pub fn publish_timeout(mut self, limit: Duration) -> Self {
        self.publish_timeout = limit;
        self
    }

    /// The largest body that is sent, in bytes.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.max_message_size = bytes;
        self
    }

    /// Private CA and client certificate.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    /// What follows a queue's name in its dead-letter queue's.
    pub fn dead_suffix(mut self, suffix: impl Into<String>) -> Self {
        self.dead_suffix = suffix.into();
        self
    }

    /// Whether dead-letter queues are declared and used.
    pub fn declare_dead_letter_queues(mut self, declare: bool) -> Self {
        self.declare_dead_letter_queues = declare;
        self
    }

    /// What follows a queue's name in its hold queues'.
    pub fn deferred_suffix(mut self, suffix: impl Into<String>) -> Self {
        self.deferred_suffix = suffix.into();
        self
    }

    /// Retries and delayed enqueues round up to this.
    pub fn retry_granularity(mut self, granularity: Duration) -> Self {
        self.retry_granularity = granularity;
        self
    }

    /// Deferrals round up to this.
    pub fn deferred_granularity(mut self, granularity: Duration) -> Self {
        self.deferred_granularity = granularity;
        self
    }

    /// Where workers on this backend run handlers unless told otherwise.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = Some(runtime);
        self
    }
}

/// Whom to trust, and how to prove who is calling, on an `amqps://` connection.
#[derive(Clone, Default)]
pub struct Tls(OwnedTLSConfig);

impl Tls {
    /// The system's CAs, no client certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also trusts the certificates in this PEM text.
    ///
    /// `rustls-native-certs`, part of the default, wants at least one CA on the machine all the
    /// same; where there is none, build with `rustls-webpki-roots` in its place.
    pub fn ca_pem(mut self, pem: impl Into<String>) -> Self {
        self.0.cert_chain = Some(pem.into());
        self
    }

    /// Presents this certificate (chain), with its unencrypted PKCS#8 key; both PEM.
    pub fn client_pem(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.0.identity = Some(OwnedIdentity::PKCS8 {
            pem: certificate.into(),
            key: key.into(),
        });
        self
    }

    /// Presents the certificate and key of this PKCS#12 archive.
    pub fn client_pkcs12(
        mut self,
        archive: impl Into<Vec<u8>>,
        password: impl Into<String>,
    ) -> Self {
        self.0.identity = Some(OwnedIdentity::PKCS12 {
            der: archive.into(),
            password: password.into(),
        });
        self
    }

    pub(super) fn config(&self) -> OwnedTLSConfig {
        self.0.clone()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("private_ca", &self.0.cert_chain.is_some())
            .field("client_certificate", &self.0.identity.is_some())
            .finish()
    }
}
