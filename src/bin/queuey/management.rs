//! [`Management`]: the HTTP API of the broker's management plugin.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::de::DeserializeOwned;
use ureq::{
    Agent,
    tls::{PemItem, RootCerts, TlsConfig, parse_pem},
};
use url::Url;

use crate::failure::Failure;

const CONNECT: Duration = Duration::from_secs(10);
/// A large cluster takes its time.
const ANSWER: Duration = Duration::from_secs(60);
const MAX_ANSWER: u64 = 256 << 20;

/// The management API, asked about one vhost.
#[derive(Clone)]
pub(crate) struct Management {
    agent: Agent,
    base: Arc<str>,
    login: Arc<str>,
    vhost: Arc<str>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    /// Of HTTP, if it came to that.
    pub(crate) status: Option<u16>,
    text: String,
}

impl Management {
    /// The API at `url`, for the vhost of the broker at `amqp`, and as its user unless `url` has one.
    /// Trusts what `ca` vouches for, or else the system.
    ///
    /// # Errors
    /// What is wrong with `url` or `ca`; no text quotes a password.
    pub(crate) fn new(url: &str, amqp: &str, ca: Option<&str>) -> Result<Self, String> {
        let bad = |why: &dyn fmt::Display| {
            format!("the management URL is no `http[s]://user:password@host:port`: {why}")
        };
        let mut base = Url::parse(url).map_err(|error| bad(&error))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(bad(&"the scheme is another"));
        }
        // A bad address is told about by whoever connects.
        let amqp = Url::parse(amqp).ok();
        let vhost = amqp.as_ref().map_or("", |amqp| amqp.path());
        let vhost = match vhost.strip_prefix('/') {
            Some(name) => decoded(name).into_owned(),
            None => "/".into(),
        };
        let login = match (base.username(), &amqp) {
            ("", Some(amqp)) => login(amqp),
            _ => login(&base),
        };
        let _ = base.set_username("").and_then(|()| base.set_password(None));
        base.set_query(None);
        base.set_fragment(None);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(ANSWER))
            .proxy(None)
            .tls_config(
                TlsConfig::builder()
                    .root_certs(ca.map_or(Ok(RootCerts::PlatformVerifier), roots)?)
                    .build(),
            );
        Ok(Self {
            agent: config.build().into(),
            base: base.as_str().trim_end_matches('/').into(),
            login: format!("Basic {}", BASE64_STANDARD.encode(login)).into(),
            vhost: vhost.into(),
        })
    }

    /// The answer about `path`, in which `{vhost}` stands for the vhost.
    pub(crate) async fn get<T>(&self, path: &str) -> Result<T, NoAnswer>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let vhost = utf8_percent_encode(&self.vhost, NON_ALPHANUMERIC).to_string();
        let path = format!("/api/{}", path.replace("{vhost}", &vhost));
        let management = self.clone();
        blocking::unblock(move || management.ask(&path)).await
    }

    fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, NoAnswer> {
        let (plain, _) = path.split_once('?').unwrap_or((path, ""));
        let no_answer = |status, why: &str| NoAnswer {
            status,
            text: format!("{}{plain}: {why}", self.base),
        };
        let request = self.agent.get(format!("{}{path}", self.base));
        let mut answer = request
            .header("Authorization", &*self.login)
            .call()
            .map_err(|error| no_answer(None, &error.to_string()))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(MAX_ANSWER);
        let body = body
            .read_to_vec()
            .map_err(|error| no_answer(None, &error.to_string()))?;
        // A health check that fails is an answer too.
        if !status.is_success() && status.as_u16() != 503 {
            let words = String::from_utf8_lossy(&body);
            return Err(no_answer(
                Some(status.as_u16()),
                &format!("{status} {words}"),
            ));
        }
        serde_json::from_slice(&body).map_err(|error| {
            no_answer(
                Some(status.as_u16()),
                &format!("{status}, and no answer of RabbitMQ's management API ({error})"),
            )
        })
    }
}

/// The certificates of a PEM file.
fn roots(pem: &str) -> Result<RootCerts, String> {
    let mut all = vec![];
    for item in parse_pem(pem.as_bytes()) {
        match item {
            Ok(PemItem::Certificate(certificate)) => all.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("--tls-ca cannot be read: {error}")),
        }
    }
    match all.is_empty() {
        true => Err("--tls-ca has no certificate in it".into()),
        false => Ok(RootCerts::new_with_certs(&all)),
    }
}

fn login(url: &Url) -> String {
    let user = match url.username() {
        "" => "guest",
        user => user,
    };
    let password = url.password().unwrap_or("guest");
    format!("{}:{}", decoded(user), decoded(password))
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

impl fmt::Debug for Management {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Management({}, vhost {})", self.base, self.vhost)
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text.trim_end())
    }
}

impl From<NoAnswer> for Failure {
    fn from(error: NoAnswer) -> Self {
        match error.status {
            Some(401 | 403) => Self::Unreachable(format!(
                "{error} (the user needs the tag `management`, or better `monitoring`)"
            )),
            _ => Self::Unreachable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_password_and_vhost_come_from_the_broker_unless_told() {
        for (url, amqp, base, login, vhost) in [
            (
                "http://a:15672/",
                "amqp://u:p%40@b/prod",
                "http://a:15672",
                "u:p@",
                "prod",
            ),
            ("https://x:y@a/r", "amqp://u:p@b", "https://a/r", "x:y", "/"),
            ("http://a", "amqp://b/%2f", "http://a", "guest:guest", "/"),
        ] {
            let management = Management::new(url, amqp, None).unwrap();

            let login = format!("Basic {}", BASE64_STANDARD.encode(login));
            assert_eq!(&*management.base, base);
            assert_eq!(*management.login, *login);
            assert_eq!(&*management.vhost, vhost);
        }
        assert!(Management::new("amqp://a", "amqp://b", None).is_err());
    }

    #[test]
    fn no_text_has_the_password_in_it() {
        let management = Management::new("http://u:secret@127.0.0.1:1", "amqp://b", None).unwrap();
        let failed = management.ask::<()>("/api/overview").unwrap_err();

        assert!(!format!("{management:?} {failed}").contains("secret"));
        assert!(failed.to_string().contains("127.0.0.1:1"), "{failed}");
    }
}
