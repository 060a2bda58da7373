//! [`Relay`]: a link to the broker that can be slow or break, and that sees what is asked.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use url::Url;

const QUEUE_DECLARE: [u8; 4] = [0, 50, 0, 10];
const BASIC_PUBLISH: [u8; 4] = [0, 60, 0, 40];

/// A relay between this process and the broker. Connections made to its `url` go through it.
pub struct Relay {
    pub url: String,
    link: Arc<Mutex<Link>>,
}

#[derive(Default)]
struct Link {
    /// How long bytes take each way: a time between the two.
    delay: (Duration, Duration),
    /// How much longer the next publish takes, and all behind it.
    next_publish: Duration,
    declares: Vec<String>,
    sockets: Vec<TcpStream>,
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
                connect(client?, TcpStream::connect(&broker)?, &link)?;
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

    /// Breaks every connection there is; new ones work.
    pub fn cut(&self) {
        for socket in self.link.lock().unwrap().sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn connect(client: TcpStream, broker: TcpStream, link: &Arc<Mutex<Link>>) -> io::Result<()> {
    for socket in [&client, &broker] {
        socket.set_nodelay(true)?;
        link.lock().unwrap().sockets.push(socket.try_clone()?);
    }
    let out = forward(broker.try_clone()?);
    let back = forward(client.try_clone()?);
    let (asked, answered) = (link.clone(), link.clone());
    thread::spawn(move || pump_frames(client, &out, &asked));
    thread::spawn(move || pump_bytes(broker, &back, &answered));
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

fn pump_bytes(mut from: TcpStream, to: &Sender<(Instant, Vec<u8>)>, link: &Mutex<Link>) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let due = Instant::now() + link.lock().unwrap().takes();
        if to.send((due, bytes[..count].to_vec())).is_err() {
            return;
        }
    }
}

/// Like [`pump_bytes`] for what the client sends, frame by frame.
fn pump_frames(
    mut from: TcpStream,
    to: &Sender<(Instant, Vec<u8>)>,
    link: &Mutex<Link>,
) -> io::Result<()> {
    let mut part = vec![0; 8]; // the protocol header
    from.read_exact(&mut part)?;
    loop {
        let due = Instant::now() + link.lock().unwrap().sees(&part);
        if to.send((due, part)).is_err() {
            return Ok(());
        }
        part = vec![0; 7];
        from.read_exact(&mut part)?;
        let size = u32::from_be_bytes([part[3], part[4], part[5], part[6]]);
        part.resize(7 + size as usize + 1, 0);
        from.read_exact(&mut part[7..])?;
    }
}

impl Link {
    fn takes(&self) -> Duration {
        let (least, most) = self.delay;
        least + (most - least).mul_f64(fastrand::f64())
    }

    /// How long this frame takes.
    fn sees(&mut self, frame: &[u8]) -> Duration {
        let mut takes = self.takes();
        if let [1, _, _, _, _, _, _, method @ ..] = frame {
            if method.starts_with(&QUEUE_DECLARE) {
                let length = usize::from(method[6]);
                let name = String::from_utf8_lossy(&method[7..7 + length]);
                self.declares.push(name.into_owned());
            } else if method.starts_with(&BASIC_PUBLISH) {
                takes += std::mem::take(&mut self.next_publish);
            }
        }
        takes
    }
}
