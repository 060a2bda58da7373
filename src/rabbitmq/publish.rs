//! [`Publisher`]: confirmed and mandatory, many at a time, and every verdict exact.
//!
//! lapin hands a returned message to whichever confirm it resolves next, so with many in flight
//! the confirm of a stored job can carry the return of a lost one. Two facts make verdicts exact
//! all the same: the broker sends a return before the ack of the same publish, and lapin resolves
//! confirms one after another. So a return has surfaced on its own confirm or on one that was
//! resolved earlier. See "Whose return is it?" in ARCHITECTURE.md.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use async_channel::{Receiver, Sender, bounded};
use futures_lite::{StreamExt, future};
use futures_util::stream::FuturesUnordered;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection,
    message::BasicReturnMessage,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::ShortString,
};

use super::error::broker;
use crate::{Error, Result, limits::check_name, runtime::client};

/// Publishes in flight on one channel; more wait their turn.
const WINDOW: usize = 1024;

/// Publishes through a task on the client's thread; clones share it.
#[derive(Debug, Clone)]
pub(super) struct Publisher(Sender<Publish>);

#[derive(Debug)]
struct Publish {
    queue: ShortString,
    properties: BasicProperties,
    body: Vec<u8>,
    // Nobody listens any more when the caller has dropped its future.
    verdict: Sender<Result<()>>,
}

impl Publisher {
    pub(super) fn start(connection: Arc<Connection>) -> Self {
        let (sender, requests) = bounded(WINDOW);
        client().run(run(connection, requests));
        Self(sender)
    }

    /// Publishes to `queue`; returns when the broker has the message, or says why it has not.
    pub(super) async fn publish(
        &self,
        queue: &str,
        properties: BasicProperties,
        body: Vec<u8>,
    ) -> Result<()> {
        check_name(queue)?;
        let (verdict, answer) = bounded(1);
        let publish = Publish {
            queue: queue.into(),
            properties,
            body,
            verdict,
        };
        self.0.send(publish).await.map_err(|_| Error::Closed)?;
        answer.recv().await.unwrap_or(Err(Error::Closed))
    }

    /// Refuses further publishes; those in flight still get their verdicts.
    pub(super) fn close(&self) {
        self.0.close();
    }
}

/// Serves `requests`, one channel after another.
async fn run(connection: Arc<Connection>, requests: Receiver<Publish>) {
    let mut left_over = None;
    loop {
        let first = match left_over.take() {
            Some(publish) => publish,
            None => match requests.recv().await {
                Ok(publish) => publish,
                Err(_) => return,
            },
        };
        match open(&connection, &first.queue).await {
            Ok(channel) => left_over = serve(&channel, first, &requests).await,
            Err(error) => drop(first.verdict.try_send(Err(error))),
        }
    }
}

async fn open(connection: &Connection, queue: &ShortString) -> Result<Channel> {
    let opened = async {
        let channel = connection.create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        Ok(channel)
    };
    opened.await.map_err(broker("publish to", queue.as_str()))
}

/// Publishes on `channel` until it is dead, a return surfaces on it, or nobody can ask any more.
/// Answers with a publish that was asked for too late.
async fn serve(channel: &Channel, first: Publish, requests: &Receiver<Publish>) -> Option<Publish> {
    enum Event {
        Confirmed(Confirmed),
        Asked(Publish),
        Closed,
    }
    let mut in_flight = FuturesUnordered::new();
    in_flight.push(confirm(channel.clone(), first));
    let drained = Arc::new(Rewoken::default());
    loop {
        let full = in_flight.len() >= WINDOW;
        let confirmed = async {
            match in_flight.next().await {
                Some(confirmed) => Event::Confirmed(confirmed),
                None => future::pending().await,
            }
        };
        let asked = async {
            if full {
                future::pending::<()>().await;
            }
            requests.recv().await.map_or(Event::Closed, Event::Asked)
        };
        match future::or(confirmed, asked).await {
            Event::Confirmed(first) => {
                let mut confirmed = vec![first];
                take_ready(&mut in_flight, &drained, &mut confirmed);
                if confirmed.iter().any(Confirmed::carries_return) {
                    client().run(finish(in_flight, confirmed));
                    return None;
                }
                for confirmed in confirmed {
                    confirmed.report();
                }
            }
            Event::Asked(publish) if channel.status().connected() => {
                in_flight.push(confirm(channel.clone(), publish));
                // Polled together, they cost the client's I/O thread one wake-up.
                while in_flight.len() < WINDOW
                    && let Ok(publish) = requests.try_recv()
                {
                    in_flight.push(confirm(channel.clone(), publish));
                }
            }
            Event::Asked(publish) => {
                client().run(finish(in_flight, vec![]));
                return Some(publish);
            }
            Event::Closed => {
                finish(in_flight, vec![]).await;
                return None;
            }
        }
    }
}

/// A publish and what its confirm said.
struct Confirmed {
    queue: ShortString,
    id: Option<ShortString>,
    verdict: Sender<Result<()>>,
    confirmation: lapin::Result<Confirmation>,
}

async fn confirm(channel: Channel, publish: Publish) -> Confirmed {
    let Publish {
        queue,
        properties,
        body,
        verdict,
    } = publish;
    let id = properties.message_id().clone();
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let confirmation = async {
        channel
            .basic_publish("".into(), queue.clone(), options, &body, properties)
            .await?
            .await
    };
    Confirmed {
        confirmation: confirmation.await,
        queue,
        id,
        verdict,
    }
}

impl Confirmed {
    fn carries_return(&self) -> bool {
        matches!(
            self.confirmation,
            Ok(Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)))
        )
    }

    /// The return on this confirm, which may be another publish's.
    fn take_return(&mut self) -> Option<BasicReturnMessage> {
        match &mut self.confirmation {
            Ok(Confirmation::Ack(message) | Confirmation::Nack(message)) => message.take(),
            _ => None,
        }
    }

    fn is_returned_in(&self, message: &BasicReturnMessage) -> bool {
        message.routing_key == self.queue && *message.properties.message_id() == self.id
    }

    fn report(self) {
        let verdict = match self.confirmation {
            Ok(Confirmation::Ack(_)) => Ok(()),
            Ok(Confirmation::Nack(_) | Confirmation::NotRequested) => Err(Error::Nacked {
                queue: self.queue.to_string(),
            }),
            Err(error) => Err(broker("publish to", self.queue.as_str())(error)),
        };
        let _ = self.verdict.try_send(verdict);
    }

    fn report_unroutable(self, message: &BasicReturnMessage) {
        let _ = self.verdict.try_send(Err(Error::Unroutable {
            queue: self.queue.to_string(),
            reply: format!("{} {}", message.reply_code, message.reply_text),
        }));
    }
}

/// Waits until nothing is in flight on the channel any more, then gives every return to the
/// publish it names.
async fn finish<F>(mut in_flight: FuturesUnordered<F>, mut confirmed: Vec<Confirmed>)
where
    F: Future<Output = Confirmed>,
{
    while let Some(next) = in_flight.next().await {
        confirmed.push(next);
    }
    let mut returns: Vec<_> = confirmed
        .iter_mut()
        .filter_map(Confirmed::take_return)
        .collect();
    for confirmed in confirmed {
        match returns
            .iter()
            .position(|message| confirmed.is_returned_in(message))
        {
            Some(own) => confirmed.report_unroutable(&returns.swap_remove(own)),
            None => confirmed.report(),
        }
    }
}

/// Takes everything that is resolved by now, so that what was resolved earlier is seen before
/// anything is reported.
fn take_ready<F>(
    in_flight: &mut FuturesUnordered<F>,
    rewoken: &Arc<Rewoken>,
    ready: &mut Vec<F::Output>,
) where
    F: Future,
{
    let waker = Waker::from(rewoken.clone());
    loop {
        match in_flight.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(Some(confirmed)) => ready.push(confirmed),
            Poll::Ready(None) => return,
            // It may pause while it has more to give, and then wakes its caller.
            Poll::Pending if rewoken.0.swap(false, Ordering::AcqRel) => {}
            Poll::Pending => return,
        }
    }
}

#[derive(Default)]
struct Rewoken(AtomicBool);

impl Wake for Rewoken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
