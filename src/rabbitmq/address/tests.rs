use proptest::prelude::*;

use super::*;

fn uri(text: &str) -> AMQPUri {
    text.parse::<Address>().unwrap().0
}

fn refusal(text: &str) -> String {
    text.parse::<Address>().unwrap_err().to_string()
}

#[test]
fn everything_has_a_default() {
    let bare = uri("amqp://");

    assert_eq!(bare, AMQPUri::default());
    assert_eq!(bare.vhost, "/");
    assert_eq!(uri("amqps://host").authority.port, 5671);
    for bare in [
        "amqp://:5672",
        "amqp://guest@",
        "amqp://:guest@:",
        "amqp://?",
    ] {
        assert_eq!(uri(bare), AMQPUri::default(), "{bare}");
    }
}

#[test]
fn every_part_is_percent_decoded() {
    let full = uri("amqp://a%40b:p%2Fw%25%3A@host:99/v%2fh?heartbeat=5&frame_max=8192");

    assert_eq!(full.authority.userinfo.username, "a@b");
    assert_eq!(full.authority.userinfo.password, "p/w%:");
    assert_eq!(full.authority.port, 99);
    assert_eq!(full.vhost, "v/h");
    assert_eq!(full.query.heartbeat, Some(5));
    assert_eq!(full.query.frame_max, Some(8192));
}

#[test]
fn an_ipv6_literal_stays_that_address() {
    assert_eq!(uri("amqp://[::1]:5672/%2f").authority.host, "::1");
    assert_eq!(uri("amqps://[2001:db8::1]/v").authority.host, "2001:db8::1");
    assert_eq!(uri("amqp://127.0.0.1/v").authority.host, "127.0.0.1");
}

#[test]
fn what_cannot_be_meant_is_refused_with_advice() {
    for (text, advice) in [
        ("amqp://host/", "`/%2f`"),
        ("amqp://u:p%ZZ@host", "password, a `%` is written `%25`"),
        ("amqp://u:100%@host", "password, a `%` is written `%25`"),
        ("amqp://host/%ff", "vhost is not UTF-8"),
        (
            "amqp://host/v?verify=verify_peer",
            "unknown parameter `verify`",
        ),
        (
            "amqp://host/v?cacertfile=/ca.pem",
            "unknown parameter `cacertfile`",
        ),
        (
            "amqp://host/v?connection_timeout=1",
            "unknown parameter `connection_timeout`",
        ),
        ("amqp://host/v?heartbeat=70000", "parameter `heartbeat`"),
        ("amqp://u:p#w@host/v", "percent-encoded"),
        ("amqp://host/v#w", "`%23`"),
        ("http://host/v", "not `http`"),
        ("amqp:host", "`amqp://`"),
        ("host", "`amqp://`"),
        ("", "`amqp://`"),
        ("amqp://u:p/w@host", "percent-encoded"),
        ("amqp://u:p?w@host", "percent-encoded"),
        ("amqp://u:p w@host", "percent-encoded"),
        ("amqp://host:70000", "up to 65535"),
        ("amqp://::1", "in `[` and `]`"),
        ("amqp://[::1", "ends with `]`"),
        ("amqp://[host]", "no IPv6 address"),
        ("amqp://[::1]5672", "comes the port"),
        ("amqp://host/v?heartbeat", "parameter `heartbeat`"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(advice), "{text}: {refusal}");
    }
}

#[test]
fn no_text_shows_the_password() {
    let address: Address = "amqp://me:hush@host/v".parse().unwrap();

    assert_eq!(address.to_string(), "amqp://me@host:5672/v");
    assert!(!format!("{address:?}").contains("hush"));
    for bad in [
        "amqp://me:hush%@host",
        "amqp://me:hush@host:x/v",
        "amqp://me:hush#@host/v",
        "amqp://me:hush/@host/v",
        "amqp://me:hush?@host/v",
        "amqp://me:hush @host/v",
    ] {
        assert!(!refusal(bad).contains("hush"), "{}", refusal(bad));
    }
}

#[test]
fn a_built_address_is_the_parsed_one() {
    let built = Address::new("::1")
        .port(99)
        .user("a@b", "p/w%:")
        .vhost("v/h")
        .heartbeat(0);

    let parsed = uri("amqp://a%40b:p%2Fw%25%3A@[::1]:99/v%2fh?heartbeat=0");
    assert_eq!(built.0, parsed);
    assert_eq!(Address::new("host").tls().0, uri("amqps://host"));
}

/// `text` with every byte percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

proptest! {
    #[test]
    fn whatever_is_percent_encoded_arrives(user in ".+", password in ".*", vhost in ".+", port: u16) {
        let [user_, password_, vhost_] = [&user, &password, &vhost].map(|text| encoded(text));
        let text = format!("amqps://{user_}:{password_}@h%2Dost:{port}/{vhost_}?heartbeat=%35");

        let parsed = uri(&text);

        prop_assert_eq!(parsed.authority.userinfo, AMQPUserInfo { username: user, password });
        prop_assert_eq!((parsed.authority.host, parsed.authority.port), ("h-ost".into(), port));
        prop_assert_eq!((parsed.vhost, parsed.query.heartbeat), (vhost, Some(5)));
    }

    #[test]
    fn no_text_panics(text in ".*", rest in "[@:/?#%\\[\\]a0]*") {
        let _ = text.parse::<Address>();
        let _ = format!("amqp://{rest}").parse::<Address>();
    }
}
