//! [`Relay`]: a link to the broker that can be slow, break or fall silent, and that sees what is
//! asked.

use std::{
    cell::Cell,
    io::{self, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use url::Url;

const CONNECTION_CLOSE: [u8; 4] = [0, 10, 0, 50];
const QUEUE_DECLARE: [u8; 4] = [0, 50, 0, 10];
const BASIC_PUBLISH: [u8; 4] = [0, 60, 0, 40];
const BASIC_ACK: [u8; 4] = [0, 60, 0, 80];

/// A relay between this process and the broker. Connections made to its `url` go through it.
pub struct Relay {
    pub url: String,
    link: Arc<Mutex<Link>>,
}

/// Which way bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    ToBroker,
    FromBroker,
}

impl Way {
    pub const BOTH: [Self; 2] = [Self::ToBroker, Self::FromBroker];
}

#[derive(Default)]
struct Link {
    /// How long bytes take each way: a time between the two.
    delay: (Duration, Duration),
    /// How much longer the next publish takes, and all behind it.
    next_publish: Duration,
    declares: Vec<String>,
    cuts_declare_of: Option<String>,
    farewells: usize,
    refuses: bool,
    /// New connections break at this frame of the broker, counted from 1.
    breaks_at: Option<usize>,
    swallows_confirms: bool,
    connections: Vec<Connection>,
}

struct Connection {
    sockets: [TcpStream; 2],
    silent: [Arc<AtomicBool>; 2],
}

impl Relay {
    /// A relay to the broker at `url`.
    pub fn to(url: &str) -> Self {
        let mut url = Url::parse(url).unwrap();
        let broker = (
            url.host_str().unwrap().to_owned(),
            url.port().unwrap_or(5672),
        );
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port()))
            .unwrap();
        let link = Arc::<Mutex<Link>>::default();
        let relay = Self {
            url: url.into(),
            link: link.clone(),
        };
        thread::spawn(move || {
            for client in listener.incoming() {
                let refuses = link.lock().unwrap().refuses;
                if let (false, Ok(broker)) = (refuses, TcpStream::connect(&broker)) {
                    connect(client?, broker, &link)?;
                }
            }
            io::Result::Ok(())
        });
        relay
    }

    /// From now on bytes take between `least` and `most` each way.
    pub fn delay(&self, least: Duration, most: Duration) {
        self.link.lock().unwrap().delay = (least, most);
    }

    /// The next publish arrives this much later.
    pub fn delay_next_publish(&self, delay: Duration) {
        self.link.lock().unwrap().next_publish = delay;
    }

    /// How often `queue` was declared.
    pub fn declares(&self, queue: &str) -> usize {
        let link = self.link.lock().unwrap();
        link.declares.iter().filter(|name| *name == queue).count()
    }

    /// Breaks every connection there is at the next declare of `queue`; new ones work.
    pub fn cut_at_declare(&self, queue: &str) {
        self.link.lock().unwrap().cuts_declare_of = Some(queue.into());
    }

    /// How many connections the client has closed as it should.
    pub fn farewells(&self) -> usize {
        self.link.lock().unwrap().farewells
    }

    /// Breaks every connection there is; new ones work.
    pub fn cut(&self) {
        self.link.lock().unwrap().cut();
    }

    /// Whether new connections are hung up on, as where nobody listens.
    pub fn refuse(&self, refuse: bool) {
        self.link.lock().unwrap().refuses = refuse;
    }

    /// Whether connections break instead of passing on this frame of the broker, counted from 1.
    pub fn break_at(&self, frame: Option<usize>) {
        self.link.lock().unwrap().breaks_at = frame;
    }

    /// Swallows what the connections there are send these ways; they stay open, and new ones work.
    pub fn fall_silent(&self, ways: &[Way]) {
        for connection in &self.link.lock().unwrap().connections {
            for way in ways {
                connection.silent[*way as usize].store(true, Ordering::Relaxed);
            }
        }
    }

    /// Whether confirms of the broker are swallowed, and nothing else.
    pub fn swallow_confirms(&self, swallow: bool) {
        self.link.lock().unwrap().swallows_confirms = swallow;
    }
}

fn connect(client: TcpStream, broker: TcpStream, link: &Arc<Mutex<Link>>) -> io::Result<()> {
    for socket in [&client, &broker] {
        socket.set_nodelay(true)?;
    }
    let connection = Connection {
        sockets: [client.try_clone()?, broker.try_clone()?],
        silent: Default::default(),
    };
    let [out_silent, back_silent] = connection.silent.clone();
    link.lock().unwrap().connections.push(connection);
    let out = forward(broker.try_clone()?);
    let back = forward(client.try_clone()?);
    let (asked, answered) = (link.clone(), link.clone());
    let client_end = client.try_clone()?;
    thread::spawn(move || {
        let mut client = BufReader::new(client);
        let mut header = vec![0; 8];
        client.read_exact(&mut header)?;
        let pump = Pump(&asked, &out_silent, out);
        pump.pass(header, |link, header| Some(link.sees(header)));
        pump.frames(client, |link, frame| Some(link.sees(frame)))
    });
    let ends = [broker.try_clone()?, client_end];
    thread::spawn(move || {
        let pump = Pump(&answered, &back_silent, back);
        let seen = Cell::new(0);
        pump.frames(BufReader::new(broker), |link, frame| {
            seen.set(seen.get() + 1);
            if link.breaks_at == Some(seen.get()) {
                for end in &ends {
                    let _ = end.shutdown(Shutdown::Both);
                }
                return None;
            }
            let swallowed = link.swallows_confirms && method(frame).starts_with(&BASIC_ACK);
            (!swallowed).then(|| link.takes())
        })
    });
    Ok(())
}

/// Writes what it is sent, each part when it is due.
fn forward(mut socket: TcpStream) -> Sender<(Instant, Vec<u8>)> {
    let (sender, parts): (_, Receiver<(Instant, Vec<u8>)>) = channel();
    thread::spawn(move || {
        for (due, bytes) in parts {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if socket.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = socket.shutdown(Shutdown::Both);
    });
    sender
}

/// Carries frames from one socket to the thread that writes to the other.
struct Pump<'a>(&'a Mutex<Link>, &'a AtomicBool, Sender<(Instant, Vec<u8>)>);

impl Drop for Pump<'_> {
    /// The end of one socket is the end of the other, unless nothing is passed on.
    fn drop(&mut self) {
        if self.1.load(Ordering::Relaxed) {
            std::mem::forget(self.2.clone());
        }
    }
}

impl Pump<'_> {
    fn frames(
        &self,
        mut from: impl Read,
        takes: impl Fn(&mut Link, &[u8]) -> Option<Duration>,
    ) -> io::Result<()> {
        loop {
            let mut frame = vec![0; 7];
            from.read_exact(&mut frame)?;
            let size = u32::from_be_bytes([frame[3], frame[4], frame[5], frame[6]]);
            frame.resize(7 + size as usize + 1, 0);
            from.read_exact(&mut frame[7..])?;
            self.pass(frame, &takes);
        }
    }

    /// Passes `part` on after as long as it takes, if it is passed on at all.
    fn pass(&self, part: Vec<u8>, takes: impl Fn(&mut Link, &[u8]) -> Option<Duration>) {
        let Self(link, silent, to) = self;
        if let (Some(takes), false) = (
            takes(&mut link.lock().unwrap(), &part),
            silent.load(Ordering::Relaxed),
        ) {
            let _ = to.send((Instant::now() + takes, part));
        }
    }
}

/// The method in `frame` and its arguments; nothing of a frame that holds no method.
fn method(frame: &[u8]) -> &[u8] {
    match frame {
        [1, _, _, _, _, _, _, method @ ..] => method,
        _ => &[],
    }
}

impl Link {
    fn cut(&mut self) {
        for connection in self.connections.drain(..) {
            for socket in connection.sockets {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }

    fn takes(&self) -> Duration {
        let (least, most) = self.delay;
        least + (most - least).mul_f64(fastrand::f64())
    }

    /// How long this frame of the client takes.
    fn sees(&mut self, frame: &[u8]) -> Duration {
        let mut takes = self.takes();
        let method = method(frame);
        if method.starts_with(&QUEUE_DECLARE) {
            let length = usize::from(method[6]);
            let name = String::from_utf8_lossy(&method[7..7 + length]);
            if self.cuts_declare_of.take_if(|it| *it == name).is_some() {
                self.cut();
            }
            self.declares.push(name.into_owned());
        } else if method.starts_with(&BASIC_PUBLISH) {
            takes += std::mem::take(&mut self.next_publish);
        } else if method.starts_with(&CONNECTION_CLOSE) {
            self.farewells += 1;
        }
        takes
    }
}
