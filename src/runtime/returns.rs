//! [`Returns`]: the messages a broker sends back, seen before lapin sees them.
//!
//! lapin hands a returned message to whichever confirm it resolves next, so with many in flight
//! the confirm of a stored job can carry the return of a lost one. The broker sends a return
//! before the ack of the same publish: noted down as its bytes pass, it is there when its own
//! publish is confirmed.
//!
//! The first frame of a connection says which broker this is; lapin keeps that to itself too.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lapin::types::ShortString;

/// What one connection's broker has sent back and nobody has asked for yet, and its version.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    returned: Mutex<Vec<Return>>,
    version: OnceLock<String>,
}

#[derive(Debug)]
struct Return {
    queue: String,
    message_id: Option<String>,
    reply: String,
}

impl Returns {
    /// Why the message with this id came back from this queue, if it did. To be asked once for
    /// each publish, when its confirm is there.
    pub(crate) fn take(&self, queue: &ShortString, id: &Option<ShortString>) -> Option<String> {
        let mut returns = self.lock();
        let own = returns.iter().position(|it| {
            let id = id.as_ref().map(ShortString::as_str);
            it.queue == queue.as_str() && it.message_id.as_deref() == id
        })?;
        Some(returns.swap_remove(own).reply)
    }

    /// The version of RabbitMQ, such as `4.3.6`; `None` of another broker.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.get().map(String::as_str)
    }

    fn add(&self, returned: Return) {
        self.lock().push(returned);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Return>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BASIC_RETURN: [u8; 4] = [0, 60, 0, 50];
const CONNECTION_START: [u8; 4] = [0, 10, 0, 10];
/// Type, channel and size.
const FRAME_HEAD: usize = 7;

/// Follows the frames of a connection and notes down the returns among them, and the version.
#[derive(Debug)]
pub(super) struct Scanner {
    returns: Arc<Returns>,
    /// What the next bytes are, and how many.
    part: Part,
    missing: usize,
    /// The frame so far, unless it is skipped.
    frame: Vec<u8>,
    /// Queue and reply of what is said to be returned; its properties follow.
    returned: Option<(String, String)>,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Head,
    /// Class and method.
    Kind,
    Wanted,
    Skipped,
}

impl Scanner {
    pub(super) fn new(returns: Arc<Returns>) -> Self {
        Self {
            returns,
            part: Part::Head,
            missing: FRAME_HEAD,
            frame: Vec::new(),
            returned: None,
        }
    }

    /// `bytes` come in.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(self.missing.min(bytes.len()));
            if !matches!(self.part, Part::Skipped) {
                self.frame.extend_from_slice(part);
            }
            self.missing -= part.len();
            if self.missing == 0 {
                self.turn();
            }
            bytes = rest;
        }
    }

    /// A part is complete.
    fn turn(&mut self) {
        (self.part, self.missing) = match self.part {
            Part::Head => {
                let [kind, _, _, a, b, c, d] = self.frame[..] else {
                    return;
                };
                let payload = u32::from_be_bytes([a, b, c, d]) as usize;
                match kind {
                    METHOD if payload >= BASIC_RETURN.len() => (Part::Kind, BASIC_RETURN.len()),
                    HEADER if self.returned.is_some() => (Part::Wanted, payload + 1),
                    _ => (Part::Skipped, payload + 1),
                }
            }
            Part::Kind => {
                let size = [3, 4, 5, 6].map(|at| self.frame[at]);
                let rest = u32::from_be_bytes(size) as usize - BASIC_RETURN.len() + 1;
                match [BASIC_RETURN, CONNECTION_START].contains(&self.method()) {
                    true => (Part::Wanted, rest),
                    false => (Part::Skipped, rest),
                }
            }
            Part::Wanted | Part::Skipped => {
                if matches!(self.part, Part::Wanted) {
                    self.note();
                }
                self.frame.clear();
                (Part::Head, FRAME_HEAD)
            }
        };
    }

    /// Class and method of the frame.
    fn method(&self) -> [u8; 4] {
        [0, 1, 2, 3].map(|at| self.frame[FRAME_HEAD + at])
    }

    /// A wanted frame is complete. In one that cannot be read lapin finds the same fault, and ends
    /// the connection.
    fn note(&mut self) {
        let fields = Fields(&self.frame[FRAME_HEAD..]);
        if self.frame[0] == METHOD {
            if self.method() == CONNECTION_START {
                if let Some(version) = fields.version() {
                    let _ = self.returns.version.set(version);
                }
                return;
            }
            self.returned = fields.returned();
        } else if let Some((queue, reply)) = self.returned.take()
            && let Some(message_id) = fields.message_id()
        {
            self.returns.add(Return {
                queue,
                message_id,
                reply,
            });
        }
    }
}

/// The fields of a frame that are left to read, in the order of the AMQP 0-9-1 specification.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.bytes(1)?[0];
        let bytes = self.bytes(length.into())?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Queue and reply of a `basic.return`.
    fn returned(mut self) -> Option<(String, String)> {
        self.bytes(BASIC_RETURN.len())?;
        let (code, text, _exchange) = (self.short()?, self.text()?, self.text()?);
        Some((self.text()?, format!("{code} {text}")))
    }

    /// What RabbitMQ says of itself in a `connection.start`.
    fn version(self) -> Option<String> {
        let property = |name: &[u8]| {
            let at = self.0.windows(name.len()).position(|it| it == name)?;
            let mut rest = Fields(&self.0[at + name.len()..]);
            let length = rest.bytes(4)?.try_into().ok()?;
            let text = rest.bytes(u32::from_be_bytes(length) as usize)?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        property(b"\x07productS").filter(|product| product == "RabbitMQ")?;
        property(b"\x07versionS")
    }

    /// The message id among the properties of a content header, if there is one.
    fn message_id(mut self) -> Option<Option<String>> {
        const CLASS_WEIGHT_SIZE: usize = 2 + 2 + 8;
        self.bytes(CLASS_WEIGHT_SIZE)?;
        let flags = self.short()?;
        // From the highest bit on: content type and encoding, headers, delivery mode and priority,
        // correlation id, reply to and expiration, message id.
        for bit in (8..=15).rev().filter(|bit| flags & (1 << bit) != 0) {
            match bit {
                13 => {
                    let length = self.bytes(4)?.try_into().ok()?;
                    self.bytes(u32::from_be_bytes(length) as usize)?;
                }
                11 | 12 => {
                    self.bytes(1)?;
                }
                _ => {
                    self.text()?;
                }
            }
        }
        match flags & (1 << 7) {
            0 => Some(None),
            _ => self.text().map(Some),
        }
    }
}

#[cfg(test)]
mod tests;
