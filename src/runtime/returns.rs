//! [`Returns`]: the messages a broker sends back, seen before lapin sees them.
//!
//! lapin hands a returned message to whichever confirm it resolves next, so with many in flight
//! the confirm of a stored job can carry the return of a lost one. The broker sends a return
//! before the ack of the same publish: noted down as its bytes pass, it is there when its own
//! publish is confirmed.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use amq_protocol::{
    frame::{AMQPFrame, parse_frame},
    protocol::{AMQPClass, basic},
};
use lapin::types::ShortString;

/// What one connection's broker has sent back and nobody has asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Returns(Mutex<Vec<Return>>);

#[derive(Debug)]
struct Return {
    method: basic::Return,
    message_id: Option<ShortString>,
}

impl Returns {
    /// Why the message with this id came back from this queue, if it did. To be asked once for
    /// each publish, when its confirm is there.
    pub(crate) fn take(&self, queue: &ShortString, id: &Option<ShortString>) -> Option<String> {
        let mut returns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = returns
            .iter()
            .position(|it| it.method.routing_key == *queue && it.message_id == *id)?;
        let basic::Return {
            reply_code,
            reply_text,
            ..
        } = returns.swap_remove(own).method;
        Some(format!("{reply_code} {reply_text}"))
    }

    fn add(&self, returned: Return) {
        let mut returns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        returns.push(returned);
    }
}

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BASIC_RETURN: [u8; 4] = [0, 60, 0, 50];
/// Type, channel and size.
const FRAME_HEAD: usize = 7;

/// Follows the frames of a connection and notes down the returns among them.
#[derive(Debug)]
pub(super) struct Scanner {
    returns: Arc<Returns>,
    /// What the next bytes are, and how many.
    part: Part,
    missing: usize,
    /// The frame so far, unless it is skipped.
    frame: Vec<u8>,
    /// Said to be returned; its properties follow.
    returned: Option<basic::Return>,
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
                match self.frame[FRAME_HEAD..] == BASIC_RETURN {
                    true => (Part::Wanted, rest),
                    false => (Part::Skipped, rest),
                }
            }
            Part::Wanted | Part::Skipped => {
                let frame = mem::take(&mut self.frame);
                if matches!(self.part, Part::Wanted) {
                    self.note(&frame);
                }
                self.frame = frame;
                self.frame.clear();
                (Part::Head, FRAME_HEAD)
            }
        };
    }

    fn note(&mut self, frame: &[u8]) {
        match parse_frame(frame) {
            Ok((_, AMQPFrame::Method(_, AMQPClass::Basic(basic::AMQPMethod::Return(method))))) => {
                self.returned = Some(method);
            }
            Ok((_, AMQPFrame::Header(_, header))) => {
                if let Some(method) = self.returned.take() {
                    self.returns.add(Return {
                        method,
                        message_id: header.properties.message_id().clone(),
                    });
                }
            }
            // lapin finds the same fault and ends the connection.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
