//! [`Tail`]: the last of what a program prints, passed on line by line meanwhile.

use std::{
    collections::VecDeque,
    io::{self, Write},
};

use futures_lite::{AsyncRead, AsyncReadExt};
use queuey_rabbitmq::Uuid;

/// How much is kept: as much as a record of a failure keeps of one text.
const KEPT: usize = 1000;
/// A line that is longer is passed on in parts.
const LINE: usize = 8 * 1024;

/// Where a line goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sink {
    Stdout,
    Stderr,
}

/// The last of what a program printed.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    pub(super) async fn fill(
        &mut self,
        from: Option<impl AsyncRead + Unpin>,
        sink: Option<(Uuid, Sink)>,
    ) {
        let Some(mut from) = from else { return };
        let mut some = vec![0; LINE];
        let mut lines = sink.map(|(id, sink)| Lines(vec![], id, sink));
        while let Ok(read @ 1..) = from.read(&mut some).await {
            self.keep(&some[..read]);
            if let Some(lines) = &mut lines {
                lines.add(&some[..read]);
            }
        }
    }

    fn keep(&mut self, some: &[u8]) {
        let some = &some[some.len().saturating_sub(KEPT)..];
        self.0.extend(some);
        let excess = self.0.len().saturating_sub(KEPT);
        self.0.drain(..excess);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(u8::is_ascii_whitespace)
    }

    pub(super) fn text(&self) -> Option<String> {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        // Where the first character was cut, its rest is left out.
        let rest = bytes.iter().take_while(|&&byte| byte & 0xC0 == 0x80);
        let text = String::from_utf8_lossy(&bytes[rest.count()..]);
        (!self.is_empty()).then(|| text.trim().to_owned())
    }
}

/// What is printed, up to where the next line begins. Dropped, it passes on what it has.
#[derive(Debug)]
struct Lines(Vec<u8>, Uuid, Sink);

impl Lines {
    fn add(&mut self, some: &[u8]) {
        for part in some.split_inclusive(|&byte| byte == b'\n') {
            self.0.extend_from_slice(part);
            if part.ends_with(b"\n") || self.0.len() >= LINE {
                self.pass_on();
            }
        }
    }

    fn pass_on(&mut self) {
        let text = String::from_utf8_lossy(&self.0);
        let line = format!("[{}] {}\n", self.1, text.trim_end_matches(['\r', '\n']));
        // Whether anybody reads it is not the job's business.
        let _ = match self.2 {
            Sink::Stdout => io::stdout().write_all(line.as_bytes()),
            Sink::Stderr => io::stderr().write_all(line.as_bytes()),
        };
        self.0.clear();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.pass_on();
        }
    }
}
