//! [`Relay`]: between a program and the broker, counting what the program asks for.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use peers::bench::Failure;

/// How often a program sent these methods.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    declares: AtomicU64,
    publishes: AtomicU64,
}

impl Counts {
    pub(crate) fn declares(&self) -> u64 {
        self.declares.load(Ordering::Relaxed)
    }

    pub(crate) fn publishes(&self) -> u64 {
        self.publishes.load(Ordering::Relaxed)
    }

    fn sees(&self, class: u16, method: u16) {
        match (class, method) {
            (50, 10) => &self.declares,
            (60, 40) => &self.publishes,
            _ => return,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}

/// Its threads end with this process.
pub(crate) struct Relay {
    pub(crate) url: String,
    pub(crate) counts: Arc<Counts>,
}

impl Relay {
    /// In front of the broker at `url`, which has a port.
    pub(crate) fn start(url: &str) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (before, authority) = url.split_once('@').ok_or("a URL with a user")?;
        let (address, after) = authority.split_once('/').ok_or("a URL with a vhost")?;
        let url = format!("{before}@{}/{after}", listener.local_addr()?);
        let counts = Arc::<Counts>::default();
        let (broker, counting) = (address.to_owned(), counts.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A broker that is gone ends the client's connection: it is dropped.
                if let Ok(broker) = TcpStream::connect(&broker) {
                    let _ = connect(client, broker, counting.clone());
                }
            }
        });
        Ok(Self { url, counts })
    }
}

fn connect(client: TcpStream, broker: TcpStream, counts: Arc<Counts>) -> io::Result<()> {
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let (to_client, to_broker) = (client.try_clone()?, broker.try_clone()?);
    let mut frames = Frames::new(counts);
    thread::spawn(move || copy(client, to_broker, |bytes| frames.read(bytes)));
    thread::spawn(move || copy(broker, to_client, |_| ()));
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream, mut sees: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        sees(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The frames of one client: a header, `AMQP` and four bytes, then type, channel, size, payload
/// and an end mark each.
struct Frames {
    counts: Arc<Counts>,
    pending: Vec<u8>,
    is_greeted: bool,
}

impl Frames {
    fn new(counts: Arc<Counts>) -> Self {
        Self {
            counts,
            pending: Vec::new(),
            is_greeted: false,
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let mut rest = self.pending.as_slice();
        if !self.is_greeted && rest.len() >= 8 {
            rest = &rest[8..];
            self.is_greeted = true;
        }
        while self.is_greeted
            && let Some((kind, payload, after)) = frame(rest)
        {
            if kind == 1
                && let [c0, c1, m0, m1, ..] = *payload
            {
                let (class, method) = ([c0, c1], [m0, m1]);
                self.counts
                    .sees(u16::from_be_bytes(class), u16::from_be_bytes(method));
            }
            rest = after;
        }
        let read = self.pending.len() - rest.len();
        self.pending.drain(..read);
    }
}

/// Type, payload and what follows, once all of the frame is there.
fn frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(7)?;
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let (payload, end) = rest.split_at_checked(size)?;
    let (_, after) = end.split_at_checked(1)?;
    Some((head[0], payload, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: &[u8] = b"AMQP\0\0\x09\x01";
    const DECLARE: &[u8] = b"\x01\0\x01\0\0\0\x05\0\x32\0\x0a!\xce";
    const PUBLISH: &[u8] = b"\x01\0\x01\0\0\0\x04\0\x3c\0\x28\xce";
    /// A body that looks like a declare.
    const BODY: &[u8] = b"\x03\0\x01\0\0\0\x04\0\x32\0\x0a\xce";

    #[test]
    fn methods_are_counted_however_the_bytes_arrive() {
        let bytes = [GREETING, DECLARE, PUBLISH, BODY, PUBLISH].concat();
        for size in 1..=bytes.len() {
            let counts = Arc::<Counts>::default();
            let mut frames = Frames::new(counts.clone());

            bytes.chunks(size).for_each(|chunk| frames.read(chunk));

            assert_eq!((counts.declares(), counts.publishes()), (1, 2), "{size}");
        }
    }
}
