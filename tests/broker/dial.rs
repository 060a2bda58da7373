//! What is behind the port is no broker, or nothing at all.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use futures_lite::future;
use futures_util::future::join_all;
use queuey_rabbitmq::{Address, Error, RabbitMqBackend, RabbitMqOptions};

use crate::{
    connect::refusal,
    relay::Relay,
    support::{Broker, DEADLINE, pause, within},
};

/// Much longer than a dial to this machine takes, even when it is busy.
const SHORT: Duration = Duration::from_millis(300);

/// A port of the test's own, and its address.
fn listen() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, Address::new("127.0.0.1").port(port))
}

/// Serves one client in the background.
fn serve<T: Send + 'static>(
    listener: TcpListener,
    server: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        server(client)
    })
}

/// Says nothing and waits until the client has gone; answers with what it had said.
fn silent(mut client: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    match client.read_to_end(&mut said) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("the client is still there")
        }
        _ => said,
    }
}

async fn join<T: Send + 'static>(server: thread::JoinHandle<T>) -> T {
    within("the end of the client's socket", async {
        while !server.is_finished() {
            pause(Duration::from_millis(5)).await;
        }
    })
    .await;
    server.join().unwrap()
}

async fn timed_out(address: Address) {
    let options = RabbitMqOptions::new().connect_timeout(SHORT);
    let asked = Instant::now();
    let error = RabbitMqBackend::with_options(address, options)
        .await
        .unwrap_err();
    let took = asked.elapsed();
    assert!(matches!(error, Error::TimedOut { .. }), "{error:?}");
    assert!(took >= SHORT && took < DEADLINE, "{took:?}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

pub async fn a_port_nobody_listens_on_is_refused(_: Broker) {
    let (listener, address) = listen();
    drop(listener);

    let (_, text) = refusal(address).await;

    assert!(text.contains("refused"), "{text}");
    assert_eq!(text.matches("refused").count(), 1, "{text}");
}

pub async fn a_host_that_does_not_exist_is_named(_: Broker) {
    // No resolver is asked for a label of more than 63 bytes.
    let nowhere = format!("{}.invalid", "nowhere".repeat(10));
    let (_, text) = refusal(Address::new(&*nowhere)).await;

    assert!(text.contains(&format!("guest@{nowhere}:5672")), "{text}");
    assert!(text.contains("lookup"), "{text}");
}

pub async fn a_silent_server_is_given_up_in_time_and_left(_: Broker) {
    let (listener, address) = listen();
    let server = serve(listener, silent);

    timed_out(address).await;

    assert_eq!(join(server).await, b"AMQP\0\0\x09\x01");
}

pub async fn a_silent_tls_server_is_given_up_in_time_and_left(_: Broker) {
    let (listener, address) = listen();
    let server = serve(listener, silent);

    timed_out(address.tls()).await;

    let said = join(server).await;
    assert!(!said.starts_with(b"AMQP"), "plain text: {said:?}");
}

pub async fn a_dropped_dial_leaves_the_server(_: Broker) {
    for tls in [false, true] {
        let (listener, address) = listen();
        let (accepted, was_accepted) = async_channel::bounded(1);
        let server = serve(listener, move |mut client| {
            let mut first = [0; 1];
            client.read_exact(&mut first).unwrap();
            accepted.try_send(()).unwrap();
            silent(client)
        });
        let address = if tls { address.tls() } else { address };

        let dialled = async {
            let connected = RabbitMqBackend::connect(address).await;
            panic!("{connected:?}")
        };
        let seen = async { was_accepted.recv().await.unwrap() };
        within("a client", future::or(dialled, seen)).await;

        join(server).await;
    }
}

pub async fn a_link_that_breaks_in_the_handshake_is_no_reason_to_wait(broker: Broker) {
    let relay = Relay::to(&broker.url);
    // The start, its tuning and the end of the handshake.
    for frame in 1..=3 {
        relay.break_at(Some(frame));
        let dials = (0..20).map(|_| async {
            let dialled = RabbitMqBackend::connect(relay.url.as_str());
            within("the end of a dial", dialled).await.unwrap_err()
        });
        for error in join_all(dials).await {
            assert!(
                !matches!(error, Error::TimedOut { .. }),
                "{frame}: {error:?}"
            );
        }
    }
}

pub async fn a_server_that_hangs_up_is_said_to_have(_: Broker) {
    let (listener, address) = listen();
    let server = serve(listener, drop);

    let (_, text) = refusal(address).await;

    join(server).await;
    let reasons = ["aborted", "reset", "closed", "Broken pipe"];
    assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
}

pub async fn a_web_server_is_not_taken_for_a_broker(_: Broker) {
    for hangs_up in [false, true] {
        let (listener, address) = listen();
        let server = serve(listener, move |mut client| {
            let mut greeting = [0; 8];
            client.read_exact(&mut greeting).unwrap();
            client
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .unwrap();
            if !hangs_up {
                silent(client);
            }
        });

        let (_, text) = refusal(address).await;

        join(server).await;
        assert!(text.contains("AMQP"), "{text}");
    }
}

pub async fn a_server_of_another_amqp_says_so(_: Broker) {
    let (listener, address) = listen();
    let server = serve(listener, |mut client| {
        client.write_all(b"AMQP\x00\x01\x00\x00").unwrap();
        silent(client);
    });

    let (_, text) = refusal(address).await;

    join(server).await;
    assert!(
        text.contains("AMQP 1.0.0") || text.contains("1-0-0"),
        "{text}"
    );
}
