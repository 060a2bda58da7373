//! [`Wire`]: what lapin writes to and reads from, where the password takes the place of stars and
//! returned messages are noted down.
//!
//! At trace level lapin reports every frame that it writes, the login too. So the login that it is
//! given has no password in it, but as many stars.

use std::{
    convert::Infallible,
    future::Future,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem,
    net::{SocketAddr, TcpStream},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use async_channel::Sender;
use async_io::Async;
use async_rs::{AsyncIO, traits::Reactor};
use futures_core::Stream;
use futures_lite::io::{AsyncRead, AsyncWrite};
use lapin::{
    AsyncTcpStream,
    uri::{AMQPUri, SASLMechanism},
};

use super::returns::{Returns, Scanner};

/// A TCP connection, with TLS or without.
pub(crate) type Socket = AsyncTcpStream<Async<TcpStream>>;

/// The bytes of a login: as lapin writes them, and as they are sent.
#[derive(Clone)]
pub(crate) struct Login {
    starred: Vec<u8>,
    real: Vec<u8>,
}

impl Login {
    /// Takes the password out of `uri`.
    pub(crate) fn hide(uri: &mut AMQPUri) -> Option<Self> {
        let user = &mut uri.authority.userinfo;
        let length = user.password.len();
        let before = match uri.query.auth_mechanism.unwrap_or_default() {
            SASLMechanism::Plain => format!("\0{}\0", user.username).into_bytes(),
            SASLMechanism::AMQPlain => {
                let length = u32::try_from(length).ok()?;
                [&b"\x08PASSWORDS"[..], &length.to_be_bytes()].concat()
            }
            _ => return None,
        };
        let stars = "*".repeat(length);
        let starred = [&before, stars.as_bytes()].concat();
        let password = mem::replace(&mut user.password, stars);
        Some(Self {
            starred,
            real: [&before, password.as_bytes()].concat(),
        })
    }

    /// `frame` with the password in it; `None` when somebody else's login is.
    fn put_into(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let length = self.starred.len();
        let at = frame.windows(length).position(|it| it == self.starred)?;
        let mut frame = frame.to_vec();
        frame[at..at + length].copy_from_slice(&self.real);
        Some(frame)
    }
}

/// A stream that puts the password into the first frame it is given, and follows what comes in.
pub(crate) struct Wire<S = Socket> {
    stream: S,
    scanner: Scanner,
    /// Dropped with the stream, which tells that lapin has let go of it.
    _held: Option<Sender<Infallible>>,
    login: Option<Login>,
    /// What is sent in place of the next bytes given.
    instead: Vec<u8>,
}

impl<S> Wire<S> {
    pub(crate) fn new(
        stream: S,
        login: Option<Login>,
        returns: Arc<Returns>,
        held: Option<Sender<Infallible>>,
    ) -> Self {
        Self {
            stream,
            scanner: Scanner::new(returns),
            _held: held,
            login,
            instead: Vec::new(),
        }
    }

    /// Whether all that is left to do is to pass bytes on.
    fn is_clear(&self) -> bool {
        self.login.is_none() && self.instead.is_empty()
    }
}

impl<S: AsyncRead + Unpin> Wire<S> {
    /// Why nothing can be written any more: a TLS server that wants another certificate says so
    /// and hangs up, and only what was said can be read.
    fn reason(&mut self, cx: &mut Context<'_>, error: io::Error) -> io::Error {
        match Pin::new(&mut self.stream).poll_read(cx, &mut [0]) {
            Poll::Ready(Err(said)) => said,
            _ => error,
        }
    }
}

/// A method frame and more than its header; the greeting before it is shorter.
fn is_first_frame(bytes: &[u8]) -> bool {
    bytes.len() > 8 && bytes[0] == 1
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wire = &mut *self;
        if is_first_frame(bytes)
            && let Some(login) = wire.login.take()
        {
            wire.instead = login.put_into(bytes).unwrap_or_default();
        }
        let replaced = !wire.instead.is_empty();
        let bytes = if replaced { &wire.instead } else { bytes };
        match ready!(Pin::new(&mut wire.stream).poll_write(cx, bytes)) {
            Ok(written) => {
                if replaced {
                    // The rest will be given again.
                    wire.instead.drain(..written);
                }
                Poll::Ready(Ok(written))
            }
            Err(error) => Poll::Ready(Err(wire.reason(cx, error))),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_clear() {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        }
        let first = slices.iter().find(|slice| !slice.is_empty());
        self.poll_write(cx, first.map_or(&[], |slice| slice))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(flushed.map_err(|error| self.reason(cx, error)))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, bytes))?;
        self.scanner.pass(&bytes[..read]);
        Poll::Ready(Ok(read))
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read_vectored(cx, slices))?;
        let mut left = read;
        for slice in slices {
            let filled = left.min(slice.len());
            self.scanner.pass(&slice[..filled]);
            left -= filled;
        }
        Poll::Ready(Ok(read))
    }
}

/// async-io with [`Wire`] as its stream, as lapin wants to be told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wires;

impl Reactor for Wires {
    type TcpStream = Wire;
    type Sleep = <AsyncIO as Reactor>::Sleep;

    /// lapin dials; it brings no handles of its own.
    fn register<H: Read + Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<Wire, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        AsyncIO.sleep(delay)
    }

    fn interval(&self, period: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        AsyncIO.interval(period)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Wire>> + Send + 'static {
        let connecting = AsyncIO.tcp_connect_addr(address);
        async move {
            {
                let stream = AsyncTcpStream::Plain(connecting.await?);
                Ok(Wire::new(stream, None, Arc::default(), None))
            }
        }
    }
}

#[cfg(test)]
mod tests;
