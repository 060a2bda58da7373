//! Dialling: one TCP connection and its handshake, within a limit.

use std::{
    convert::Infallible,
    io,
    net::{Shutdown, TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use async_channel::Receiver;
use futures_lite::future;
use futures_util::future::BoxFuture;
use lapin::{
    AsyncTcpStream, Connection,
    tcp::OwnedTLSConfig,
    uri::{AMQPScheme, AMQPUri},
};

use super::{Address, Addresses, RabbitMqOptions, error::connecting, live::Live};
use crate::{
    Error, Result,
    latch::Latch,
    runtime::{Login, Returns, Socket, Wire, client},
};

/// What brokers allow by default. Asked for by name, lapin's buffers of 32 such frames take memory
/// only as they fill; and a foreign message's headers, which travel in one frame, always fit.
pub(super) const FRAME_MAX: u32 = 128 * 1024;

/// A silent connection is given up after twice as long, in seconds. Asked for, as brokers may be told
/// to want none.
const HEARTBEAT: u16 = 30;

/// A new connection to the first of `addresses` that answers.
pub(super) fn dial_any<'a>(
    addresses: &'a Addresses,
    options: &'a RabbitMqOptions,
) -> BoxFuture<'a, Result<Live>> {
    Box::pin(async move {
        let mut list = addresses.for_one_dial().into_iter().peekable();
        loop {
            let address = list.next().expect("no list of addresses is empty");
            match dial(&address, options).await {
                Ok(live) => return Ok(live),
                Err(error) if list.peek().is_none() => return Err(error),
                Err(error) => log::warn!("on to the next address: {}", error.chain()),
            }
        }
    })
}

/// lapin answers sooner, if it does.
const FORGOTTEN: Duration = Duration::from_millis(100);

/// A new connection to `address`.
async fn dial(address: &Address, options: &RabbitMqOptions) -> Result<Live> {
    if address.is_tls() && !cfg!(feature = "__tls") {
        // The layers below would speak plain text and log in.
        return Err(Error::TlsNotBuiltIn(address.to_string()));
    }
    let mut properties = options.connection_properties.clone();
    if let Some(name) = &options.connection_name {
        properties = properties.with_connection_name(name.as_str().into());
    }
    let cut = Latch::new();
    let attempt = Attempt(Some(cut.clone()));
    let returns = Arc::<Returns>::default();
    let (held, socket) = async_channel::bounded(1);
    let (tell, told) = async_channel::bounded(1);
    let tls = options.tls.config();
    let mut uri = address.uri().clone();
    let login = Login::hide(&mut uri);
    uri.query.frame_max.get_or_insert(FRAME_MAX);
    uri.query.heartbeat.get_or_insert(HEARTBEAT);
    let dialled = Connection::connector(
        uri,
        client().runtime(),
        {
            let (returns, released) = (returns.clone(), socket.clone());
            async move |uri, _| {
                let socket = open(&uri, &tls, &cut, &released)
                    .await
                    .inspect_err(|error| {
                        let _ = tell.try_send(io::Error::new(error.kind(), error.to_string()));
                    })?;
                let wire = Wire::new(socket, login.clone(), returns.clone(), Some(held.clone()));
                Ok(AsyncTcpStream::Plain(wire))
            }
        },
        properties,
    );
    // lapin forgets to answer when this fails before it has noted down who asks; nothing answers
    // any more when its thread has ended, and `tell` with it.
    let failed = async {
        let error = told.recv().await;
        client().sleep(FORGOTTEN).await;
        let error = error.unwrap_or_else(|_| io::ErrorKind::ConnectionAborted.into());
        Err(lapin::ErrorKind::IOError(Arc::new(error)).into())
    };
    let subject = address.to_string();
    let connection = client()
        .timeout(options.connect_timeout, future::or(dialled, failed))
        .await
        .ok_or_else(|| Error::TimedOut {
            action: "connect to",
            subject: subject.clone(),
            limit: options.connect_timeout,
        })?
        .map_err(connecting(&subject))?;
    Ok(Live::new(connection, returns, socket, attempt.succeed()))
}

/// An attempt to connect. Dropped, it ends whatever lapin's thread is waiting for: nothing else
/// would, and the thread and its socket would stay for as long as the other side is silent.
struct Attempt(Option<Latch>);

impl Attempt {
    /// What cuts the connection from now on.
    fn succeed(mut self) -> Latch {
        self.0.take().expect("only this takes it")
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(cut) = self.0.take() {
            cut.raise();
        }
    }
}

/// Shuts `socket` down once `cut` is raised, unless lapin lets go of it before.
async fn shut_down(socket: TcpStream, cut: Latch, held: Receiver<Infallible>) {
    let cut = async {
        cut.raised().await;
        let _ = socket.shutdown(Shutdown::Both);
    };
    let released = async {
        let _closed = held.recv().await;
    };
    future::or(cut, released).await;
}

/// Runs on lapin's thread, which waits for it.
async fn open(
    uri: &AMQPUri,
    tls: &OwnedTLSConfig,
    cut: &Latch,
    released: &Receiver<Infallible>,
) -> io::Result<Socket> {
    let host = uri.authority.host.as_str();
    // Blocks this thread, which has nothing else to do, and not one more.
    let addresses = (host, uri.authority.port).to_socket_addrs()?.collect();
    let stream = future::or(client().connect(addresses), async {
        cut.raised().await;
        Err(io::ErrorKind::ConnectionAborted.into())
    })
    .await?;
    let twin = stream.get_ref().try_clone()?;
    client().run(shut_down(twin, cut.clone(), released.clone()));
    let stream = AsyncTcpStream::Plain(stream);
    match uri.scheme {
        AMQPScheme::AMQP => Ok(stream),
        AMQPScheme::AMQPS => stream.into_tls(host, tls.as_ref()).await,
    }
}

/// How long a farewell may take: a blocked broker never answers.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

/// Closes the connection, or cuts it where the broker does not answer.
pub(super) async fn hang_up(live: &Live) {
    if live.is_connected() {
        let closed = async {
            let _alone = live.channels_ending.write().await;
            live.connection.close(200, "closed".into()).await
        };
        let closed = client().timeout(FAREWELL, closed).await;
        log::debug!("connection closed: {closed:?}");
        if closed.is_none() {
            live.cut();
        }
    }
}

#[cfg(all(test, not(feature = "__tls")))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn without_a_tls_stack_amqps_is_refused_before_dialling() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = Address::new("127.0.0.1").port(port).tls();

        let refused = future::block_on(dial(&address, &RabbitMqOptions::new()));

        let text = refused.unwrap_err().to_string();
        for feature in ["`rustls`", "`native-tls`", "`openssl`"] {
            assert!(text.contains(feature), "{text}");
        }
        let dialled = listener.accept().unwrap_err();
        assert_eq!(dialled.kind(), io::ErrorKind::WouldBlock);
    }
}
