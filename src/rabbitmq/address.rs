//! [`Address`]: where the broker is and who is calling.

use std::{fmt, net::Ipv6Addr, str::FromStr};

use lapin::uri::{
    AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism,
};
use percent_encoding::percent_decode_str;

use crate::{Error, Result};

/// Where the broker is and who is calling: a URI taken apart, or built field by field.
///
/// `amqp[s]://user:password@host:port/vhost?heartbeat=…`, with `heartbeat` (seconds), `frame_max`,
/// `channel_max` and `auth_mechanism` as the parameters. Defaults: `guest`, `guest`, `localhost`,
/// 5672 (5671 with TLS), the vhost `/` and a heartbeat of 30 s. Neither `Debug` nor `Display` shows
/// the password.
///
/// ```
/// # use queuey_rabbitmq::Address;
/// let address = Address::new("broker.example").user("jobs", "p@ss/word").vhost("prod");
/// assert_eq!(address.to_string(), "amqp://jobs@broker.example:5672/prod");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address(AMQPUri);

impl Address {
    /// The default user and vhost on `host`, a name or an IPv4 or IPv6 address.
    pub fn new(host: impl Into<String>) -> Self {
        Self(AMQPUri {
            authority: AMQPAuthority {
                host: host.into(),
                ..AMQPAuthority::default()
            },
            ..AMQPUri::default()
        })
    }

    /// The port; 5672 by default, 5671 with TLS.
    pub fn port(mut self, port: u16) -> Self {
        self.0.authority.port = port;
        self
    }

    /// Who is calling; taken as they are, nothing is percent-decoded.
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.0.authority.userinfo = AMQPUserInfo {
            username: name.into(),
            password: password.into(),
        };
        self
    }

    /// The virtual host, taken as it is.
    pub fn vhost(mut self, vhost: impl Into<String>) -> Self {
        self.0.vhost = vhost.into();
        self
    }

    /// How often each side shows that it is alive, in seconds, 30 by default: silence is noticed after
    /// twice as long. The broker may lower it; 0 leaves it to the broker.
    pub fn heartbeat(mut self, seconds: u16) -> Self {
        self.0.query.heartbeat = Some(seconds);
        self
    }

    /// Connects with TLS, on port 5671 unless [`port`](Self::port) says otherwise.
    pub fn tls(mut self) -> Self {
        if self.0.authority.port == AMQPScheme::AMQP.default_port() {
            self.0.authority.port = AMQPScheme::AMQPS.default_port();
        }
        self.0.scheme = AMQPScheme::AMQPS;
        self
    }

    /// The client certificate tells who is calling (SASL `EXTERNAL`), not user and password.
    pub fn external_auth(mut self) -> Self {
        self.0.query.auth_mechanism = Some(SASLMechanism::External);
        self
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.0.scheme == AMQPScheme::AMQPS
    }

    pub(crate) fn uri(&self) -> &AMQPUri {
        &self.0
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).map(Self).map_err(Error::Address)
    }
}

impl TryFrom<&str> for Address {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse()
    }
}

impl TryFrom<String> for Address {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl TryFrom<&String> for Address {
    type Error = Error;

    fn try_from(text: &String) -> Result<Self> {
        text.parse()
    }
}

/// What is missing when a part ends where nobody meant it to.
const ENCODED: &str = "special characters in user and password are percent-encoded";

// By hand: a library for URLs takes up to a tenth of a small program, most of it for what no broker
// has. No message below quotes what may hold the password.
fn parse(text: &str) -> Result<AMQPUri, String> {
    let (scheme, rest) = text
        .split_once("://")
        .ok_or("it starts with `amqp://` or `amqps://`")?;
    let scheme = match scheme {
        "amqp" => AMQPScheme::AMQP,
        "amqps" => AMQPScheme::AMQPS,
        other => return Err(format!("the scheme is `amqp` or `amqps`, not `{other}`")),
    };
    if rest.contains('#') {
        return Err(format!("a `#` is written `%23`: {ENCODED}"));
    }
    if rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!(
            "it has spaces or control characters in it: {ENCODED}"
        ));
    }
    let (place, query) = cut_before(rest, '?');
    let (authority, vhost) = cut_before(place, '/');
    let (userinfo, server) = match authority.rsplit_once('@') {
        Some((userinfo, server)) => (userinfo, server),
        None => ("", authority),
    };
    let (name, password) = cut_before(userinfo, ':');
    let (host, port) = server_of(server)?;
    let defaults = AMQPUserInfo::default();
    Ok(AMQPUri {
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: match name {
                    "" => defaults.username,
                    name => decoded("user", name)?,
                },
                password: match password {
                    None => defaults.password,
                    Some(password) => decoded("password", password)?,
                },
            },
            host: host.unwrap_or(AMQPAuthority::default().host),
            port: port.unwrap_or(scheme.default_port()),
        },
        scheme,
        vhost: match vhost {
            None => "/".into(),
            Some("") => return Err(
                "a trailing `/` names the empty vhost: leave it out for the vhost `/`, or write \
                 `/%2f`"
                    .into(),
            ),
            Some(name) => decoded("vhost", name)?,
        },
        query: query_of(query.unwrap_or_default())?,
    })
}

/// `text` before `mark`, and behind it, if it is there.
fn cut_before(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

/// Host and port, where they are given.
fn server_of(text: &str) -> Result<(Option<String>, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, behind) = rest
                .split_once(']')
                .ok_or("an IPv6 address ends with `]`")?;
            let address: Ipv6Addr = address
                .parse()
                .map_err(|_| "what is in `[` and `]` is no IPv6 address")?;
            let port = behind.strip_prefix(':');
            if port.is_none() && !behind.is_empty() {
                return Err("behind an IPv6 address comes the port, if anything".into());
            }
            (address.to_string(), port)
        }
        None => {
            let (host, port) = cut_before(text, ':');
            (decoded("host", host)?, port)
        }
    };
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(port.parse().map_err(|_| {
            format!(
                "the port is no number up to 65535; an IPv6 address is in `[` and `]`; {ENCODED}"
            )
        })?),
    };
    Ok(((!host.is_empty()).then_some(host), port))
}

fn query_of(text: &str) -> Result<AMQPQueryString, String> {
    let mut query = AMQPQueryString::default();
    for parameter in text.split('&').filter(|it| !it.is_empty()) {
        let (name, value) = cut_before(parameter, '=');
        let (name, value) = (decoded("query", name)?, value.unwrap_or_default());
        let value = decoded("query", value)?;
        match &*name {
            "frame_max" => query.frame_max = Some(number(&name, &value)?),
            "channel_max" => query.channel_max = Some(number(&name, &value)?),
            "heartbeat" => query.heartbeat = Some(number(&name, &value)?),
            "auth_mechanism" => query.auth_mechanism = Some(value.parse()?),
            _ => {
                return Err(format!(
                    "unknown parameter `{name}`: `heartbeat`, `frame_max`, `channel_max` and \
                     `auth_mechanism` go into the address, all else into the options"
                ));
            }
        }
    }
    Ok(query)
}

fn number<T: FromStr<Err: fmt::Display>>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|error| format!("parameter `{name}`: {error}"))
}

fn decoded(part: &str, text: &str) -> Result<String, String> {
    let escapes_are_hex = text.split('%').skip(1).all(|rest| {
        rest.get(..2)
            .is_some_and(|hex| u8::from_str_radix(hex, 16).is_ok())
    });
    if !escapes_are_hex {
        return Err(format!("in the {part}, a `%` is written `%25`"));
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(format!("the {part} is not UTF-8 once percent-decoded")),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AMQPUri {
            scheme,
            authority,
            vhost,
            ..
        } = &self.0;
        let (user, host, port) = (
            &authority.userinfo.username,
            &authority.host,
            authority.port,
        );
        let vhost = vhost.replace('/', "%2f");
        if host.contains(':') {
            write!(f, "{scheme}://{user}@[{host}]:{port}/{vhost}")
        } else {
            write!(f, "{scheme}://{user}@{host}:{port}/{vhost}")
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests;
