//! A backend whose deliveries the test hands out itself.
#![allow(
    clippy::result_large_err,
    reason = "so is the answer the contract asks for"
)]

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
};

use async_channel::{Receiver, Sender};
use queuey_rabbitmq::{Delivery, Result, Settled, Unsettled};

use crate::{fault::gone, *};

/// A backend that says what became of each delivery, by its number.
#[derive(Clone)]
pub(crate) struct Script {
    hand_out: Sender<Result<Handed>>,
    handed: Receiver<Result<Handed>>,
    said: Arc<Mutex<Vec<String>>>,
    /// How the next settlements fail.
    faults: Arc<Mutex<VecDeque<Fault>>>,
    /// Deliveries up to this number are gone.
    cut: Arc<AtomicU32>,
}

#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// Nothing was done.
    Lost,
    /// The successor is stored and the ack was lost.
    Stored,
    /// The delivery is still in hand.
    Back,
}

pub(crate) struct Handed {
    number: u32,
    envelope: Envelope,
    redelivered: bool,
    crashed: bool,
    subscription: u64,
    script: Script,
    settled: bool,
}

impl Script {
    pub(crate) fn new() -> Self {
        let (hand_out, handed) = async_channel::unbounded();
        Self {
            hand_out,
            handed,
            said: Arc::default(),
            faults: Arc::default(),
            cut: Arc::default(),
        }
    }

    fn hand_out(&self, number: u32, envelope: &Envelope, redelivered: bool, crashed: bool) {
        let handed = Handed {
            number,
            envelope: envelope.clone(),
            redelivered,
            crashed,
            // The next one begins with a cut.
            subscription: self.cut.load(SeqCst).into(),
            script: self.clone(),
            settled: false,
        };
        self.hand_out.try_send(Ok(handed)).ok().unwrap();
    }

    pub(crate) fn first(&self, number: u32, envelope: &Envelope) {
        self.hand_out(number, envelope, false, false);
    }

    pub(crate) fn again(&self, number: u32, envelope: &Envelope) {
        self.hand_out(number, envelope, true, false);
    }

    /// Hands out what another process may have crashed with.
    pub(crate) fn crashed(&self, number: u32, envelope: &Envelope) {
        self.hand_out(number, envelope, true, true);
    }

    /// Loses every delivery up to this number.
    pub(crate) fn cut(&self, number: u32) {
        self.cut.store(number, SeqCst);
    }

    pub(crate) fn fail_next(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    fn say(&self, number: u32, what: &str) {
        self.said.lock().unwrap().push(format!("{number} {what}"));
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    pub(crate) async fn until_said(&self, what: &[&str]) {
        until(|| self.said() == what).await;
    }
}

impl Handed {
    fn settle(mut self, verb: &str) -> Settled<Self> {
        self.settled = true;
        if self.number <= self.script.cut.load(SeqCst) {
            return Err(Unsettled::lost(gone()));
        }
        let fault = self.script.faults.lock().unwrap().pop_front();
        match fault {
            None => self.script.say(self.number, verb),
            Some(Fault::Lost) => return Err(Unsettled::lost(gone())),
            Some(Fault::Back) => {
                self.settled = false;
                return Err(Unsettled::back(self, gone()));
            }
            Some(Fault::Stored) => {
                self.script.say(self.number, &format!("{verb} but ack"));
                return Err(Unsettled::stored(gone()));
            }
        }
        Ok(())
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if !self.settled {
            self.script.say(self.number, "dropped");
        }
    }
}

impl Delivery for Handed {
    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn redelivered(&self) -> bool {
        self.redelivered
    }

    fn crashes(&self) -> u32 {
        self.envelope.crashes() + u32::from(self.crashed)
    }

    fn subscription(&self) -> u64 {
        self.subscription
    }

    async fn ack(self) -> Settled<Self> {
        self.settle("ack")
    }

    async fn retry(self, _: &Envelope, _: Duration) -> Settled<Self> {
        self.settle("retry")
    }

    async fn defer(self, _: &Envelope, _: Duration) -> Settled<Self> {
        self.settle("defer")
    }

    async fn replace(self, next: &Envelope) -> Settled<Self> {
        self.settle(&format!("replace {}", next.crashes()))
    }

    async fn dead_letter(self, _: &str) -> Settled<Self> {
        self.settle("dead-letter")
    }

    async fn release(self) -> Settled<Self> {
        self.settle("release")
    }
}

impl Backend for Script {
    type Delivery = Handed;
    type Deliveries = std::pin::Pin<Box<Receiver<Result<Handed>>>>;

    async fn declare(&self, _: &[QueueConfig]) -> Result<()> {
        Ok(())
    }

    async fn publish(&self, _: &Envelope, _: Option<Duration>) -> Result<()> {
        Ok(())
    }

    async fn defer(&self, _: &Envelope, _: Duration) -> Result<()> {
        Ok(())
    }

    async fn consume(&self, _: &QueueConfig) -> Result<Self::Deliveries> {
        Ok(Box::pin(self.handed.clone()))
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
