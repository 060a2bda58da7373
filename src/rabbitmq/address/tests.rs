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
        ("host", "relative URL"),
        ("", "relative URL"),
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
    ] {
        assert!(!refusal(bad).contains("hush"), "{}", refusal(bad));
    }
}

#[test]
fn a_built_address_is_the_parsed_one() {
    let built = Address::new("::1")
        .port(99)
        .user("a@b", "p/w%:")
        .vhost("v/h");

    assert_eq!(built.0, uri("amqp://a%40b:p%2Fw%25%3A@[::1]:99/v%2fh"));
    assert_eq!(Address::new("host").tls().0, uri("amqps://host"));
}
