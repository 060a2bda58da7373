//! A broker whose certificates are of a CA of its own.

use std::env;

use crate::{
    support::Broker,
    tool::{declared, json, run, text},
};

fn file(name: &str) -> String {
    format!("{}/{name}", env::var("TLS_DIR").unwrap())
}

pub async fn amqps_takes_a_private_ca_and_a_certificate(broker: Broker) {
    let queue = declared(&broker).await;
    let url = env::var("AMQPS_URL").unwrap();
    let (ca, cert, key) = (file("ca.pem"), file("client.pem"), file("client-key.pem"));
    let status = ["status", &queue.name, "--url", &url];
    let known = ["--tls-cert", &cert, "--tls-key", &key];
    let trusted = ["--tls-ca", &ca];

    let lines = json(&broker, &[&status[..], &trusted, &known].concat()).await;
    let untrusted = run(&broker, &[&status[..], &known].concat()).await;
    let unknown = run(&broker, &[&status[..], &trusted].concat()).await;
    let half = run(&broker, &[&status[..], &trusted, &known[..2]].concat()).await;

    assert_eq!(lines[0]["ready"], 0);
    for output in [untrusted, unknown] {
        assert_eq!(output.status.code(), Some(4), "{output:?}");
    }
    assert_eq!(half.status.code(), Some(2), "{half:?}");
}

pub async fn an_api_of_a_private_ca_is_asked(broker: Broker) {
    let queue = declared(&broker).await;
    let url = env::var("RABBITMQ_MANAGEMENT_TLS_URL").unwrap();
    let status = ["status", &queue.name, "--management-url", &url];
    let with = |name| [&status[..], &["--tls-ca", name]].concat();
    let (ca, other, none) = (file("ca.pem"), file("other-ca.pem"), file("openssl.cnf"));

    let trusted = json(&broker, &with(&ca)).await;
    let wrong = run(&broker, &with(&other)).await;
    let unknown = run(&broker, &status).await;
    let empty = run(&broker, &with(&none)).await;

    assert_eq!(trusted[0]["ready"], 0);
    for output in [wrong, unknown] {
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        let said = text(&output.stderr);
        assert!(
            said.contains("certificate") && !said.contains("guest"),
            "{said}"
        );
    }
    assert_eq!(empty.status.code(), Some(2), "{empty:?}");
    assert!(text(&empty.stderr).contains("no certificate in it"));
}
