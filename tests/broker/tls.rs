//! TLS with a private CA and client certificates.

use std::{
    env, fs, io,
    net::{Shutdown, TcpListener, TcpStream},
    process::{Command, Stdio},
    thread,
};

use futures_lite::StreamExt;
use queuey_rabbitmq::{
    Address, Backend, Chain, Delivery, RabbitMqBackend, RabbitMqOptions, Result, Tls,
    lapin::uri::AMQPUri,
};

use crate::{
    connect::{SECRET, refusal},
    support::{Broker, DEADLINE, jobs::envelope, until, within},
};

fn address() -> Address {
    env::var("AMQPS_URL").unwrap().parse().unwrap()
}

/// The port for TLS clients.
fn port() -> u16 {
    let uri: AMQPUri = env::var("AMQPS_URL").unwrap().parse().unwrap();
    uri.authority.port
}

fn file(name: &str) -> Vec<u8> {
    fs::read(format!("{}/{name}", env::var("TLS_DIR").unwrap())).unwrap()
}

fn ca(name: &str) -> Tls {
    Tls::new().ca_pem(String::from_utf8(file(name)).unwrap())
}

fn with_pem(tls: Tls) -> Tls {
    tls.client_pem(file("client.pem"), file("client-key.pem"))
}

async fn connect(address: Address, tls: Tls) -> Result<RabbitMqBackend> {
    let options = RabbitMqOptions::new().connect_timeout(DEADLINE).tls(tls);
    let connecting = RabbitMqBackend::with_options(address, options);
    within("an answer to a handshake", connecting).await
}

async fn refused(address: Address, tls: Tls) -> String {
    let error = connect(address, tls).await.unwrap_err();
    let text = Chain(&error).to_string();
    assert!(!text.contains("no answer within"), "{text}");
    text
}

/// A job goes there and comes back.
async fn works(broker: &Broker, backend: RabbitMqBackend) {
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    let sent = envelope(&queue, 1);
    backend.publish(&sent, None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = within("the job", deliveries.next()).await.unwrap().unwrap();
    assert_eq!(delivery.envelope().job_id, sent.job_id);
    delivery.ack().await.unwrap();
    backend.close().await.unwrap();
}

pub async fn a_job_goes_over_tls_with_a_pem_certificate(broker: Broker) {
    let backend = connect(address(), with_pem(ca("ca.pem"))).await.unwrap();

    works(&broker, backend).await;
}

pub async fn a_job_goes_over_tls_with_a_pkcs12_certificate(broker: Broker) {
    let password = env::var("TLS_P12_PASSWORD").unwrap();
    let tls = ca("ca.pem").client_pkcs12(file("client.p12"), password);

    let backend = connect(address(), tls).await.unwrap();

    works(&broker, backend).await;
}

pub async fn a_certificate_logs_in_as_its_common_name(broker: Broker) {
    let nobody = address().user("nobody", SECRET);
    let tls = with_pem(ca("ca.pem"));

    let text = refused(nobody.clone(), tls.clone()).await;
    assert!(text.contains("Login was refused"), "{text}");
    let backend = connect(nobody.external_auth(), tls).await.unwrap();

    works(&broker, backend).await;
}

pub async fn a_server_of_an_unknown_ca_is_refused(_: Broker) {
    for tls in [Tls::new(), ca("other-ca.pem")] {
        let text = refused(address(), with_pem(tls)).await;

        assert!(text.contains("certificate"), "{text}");
        assert!(text.contains("UnknownIssuer"), "{text}");
    }
}

pub async fn a_client_without_a_certificate_is_refused(_: Broker) {
    let text = refused(address(), ca("ca.pem")).await;

    assert!(text.to_lowercase().contains("certificate"), "{text}");
}

/// The certificate is for `localhost` and 127.0.0.1.
pub async fn a_certificate_of_another_host_is_refused(_: Broker) {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let relay = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(("127.0.0.1", port())).unwrap();
        let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || copy(back.0, back.1));
        copy(client, server);
    });

    let elsewhere = Address::new("127.0.0.2").port(relay).tls();
    let text = refused(elsewhere, with_pem(ca("ca.pem"))).await;

    assert!(text.contains("certificate not valid for name"), "{text}");
    assert!(text.contains("127.0.0.2"), "{text}");
}

pub async fn an_expired_certificate_is_said_to_be(_: Broker) {
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let mut server = Command::new("openssl")
        .current_dir(env::var("TLS_DIR").unwrap())
        .args(["s_server", "-quiet", "-cert", "expired.pem"])
        .args([
            "-key",
            "server-key.pem",
            "-accept",
            &format!("127.0.0.1:{port}"),
        ])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("a listening server", async || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .await;

    let expired = Address::new("localhost").port(port).tls();
    let text = refused(expired, with_pem(ca("ca.pem"))).await;

    server.kill().unwrap();
    server.wait().unwrap();
    assert!(text.contains("invalid peer certificate: Expired"), "{text}");
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

pub async fn a_wrong_archive_password_is_refused_and_not_shown(_: Broker) {
    let tls = ca("ca.pem").client_pkcs12(file("client.p12"), SECRET);
    assert!(!format!("{tls:?}").contains(SECRET), "{tls:?}");

    let text = refused(address(), tls).await;

    assert!(!text.contains(SECRET), "{text}");
    assert!(text.contains("PKCS#12") || text.contains("MAC"), "{text}");
}

pub async fn a_tls_port_spoken_to_in_plain_text_is_an_error(_: Broker) {
    let (_, text) = refusal(Address::new("127.0.0.1").port(port())).await;

    // Old brokers hang up without a word, or before it has arrived.
    let reasons = ["not AMQP", "reset", "aborted"];
    assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
}

pub async fn a_plain_port_spoken_to_with_tls_is_an_error(broker: Broker) {
    let plain: AMQPUri = broker.url.parse().unwrap();
    let port = plain.authority.port;

    let (_, text) = refusal(Address::new("127.0.0.1").port(port).tls()).await;

    assert!(text.contains("corrupt message"), "{text}");
}

/// In a process of its own, on whose machine no CA is installed.
pub async fn an_empty_trust_store_is_an_error(_: Broker) {
    const NAME: &str = "tls::an_empty_trust_store_is_an_error";
    if env::var("SSL_CERT_FILE").as_deref() == Ok("/dev/null") {
        let text = refused(address(), Tls::new()).await;
        assert!(text.contains("native certificates"), "{text}");
        return;
    }

    let inner = Command::new(env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env("SSL_CERT_FILE", "/dev/null")
        .env_remove("SSL_CERT_DIR")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();

    assert!(inner.status.success(), "{inner:?}");
}
