//! [`Pass`]: everything on a queue seen once, and given back in its order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_lite::StreamExt;
use lapin::{
    Consumer,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions},
    types::FieldTable,
};
use uuid::Uuid;

use super::{Admin, Letter};
use crate::{
    Error, Result,
    rabbitmq::{
        channel::OpenChannel,
        error::{broker, lost},
    },
    runtime::client,
};

/// What one consumer may hold unsettled.
const PREFETCH: u16 = 256;
/// After such a silence the queue is asked whether there is more.
const SILENCE: Duration = Duration::from_secs(1);
/// So long it may take until what was given back is there, unless somebody else takes it.
const BACK: Duration = Duration::from_secs(5);
/// So many silences in a row with messages on the queue are an error.
const SILENCES: u32 = 30;

/// One pass over what was on a queue when it began.
///
/// What it has seen stays unsettled on one channel until the end, so that nothing is seen twice;
/// in between, other consumers of the queue do not get it. Consumers take turns, each with a
/// bounded prefetch: memory here does not grow with the queue.
#[derive(Debug)]
pub struct Pass {
    admin: Admin,
    queue: String,
    channel: Arc<OpenChannel>,
    consumer: Option<Turn>,
    /// What each consumer before has kept.
    kept: Vec<Arc<Kept>>,
    left: u32,
    total: u32,
}

#[derive(Debug)]
struct Turn {
    consumer: Consumer,
    kept: Arc<Kept>,
    cancelled: bool,
}

/// What of one consumer goes back to the queue.
#[derive(Debug, Default)]
pub(super) struct Kept {
    count: AtomicUsize,
    /// Tags begin with 1.
    last: AtomicU64,
}

impl Kept {
    pub(super) fn add(&self, tag: u64) {
        self.last.fetch_max(tag, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Then nothing of this consumer is under way: on a quorum queue, what a cancel finds there
    /// would come back behind the rest.
    fn is_full(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= PREFETCH.into()
    }
}

impl Pass {
    pub(super) async fn start(admin: Admin, queue: &str, total: u32) -> Result<Self> {
        let link = admin.0.consuming().await?;
        let live = link.get("read", queue).await?;
        let channel = OpenChannel::new(live.clone(), "read", queue).await?;
        let prefetch = channel.basic_qos(PREFETCH, BasicQosOptions::default());
        live.ask("read", queue, prefetch).await?;
        Ok(Self {
            admin,
            queue: queue.into(),
            channel,
            consumer: None,
            kept: vec![],
            left: total,
            total,
        })
    }

    /// How many messages were on the queue when the pass began.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The next message, in the queue's order; `None` when all have been seen.
    ///
    /// Of every message, say whether you [keep](Letter::keep) or [remove](Letter::remove) it.
    pub async fn next(&mut self) -> Result<Option<Letter>> {
        let mut silences = 0;
        while self.left > 0 {
            let mut turn = match self.consumer.take() {
                Some(turn) => turn,
                None => self.subscribe().await?,
            };
            if turn.kept.is_full() && !turn.cancelled {
                let tag = turn.consumer.tag();
                let cancel = self
                    .channel
                    .basic_cancel(tag, BasicCancelOptions::default());
                self.channel.live.ask("read", &self.queue, cancel).await?;
                turn.cancelled = true;
            }
            let next = client().timeout(SILENCE, turn.consumer.next()).await;
            match next {
                Some(Some(delivery)) => {
                    let delivery = delivery.map_err(broker("read", &self.queue))?;
                    let letter = Letter::new(delivery, &self.queue, turn.kept.clone());
                    self.consumer = Some(turn);
                    self.left -= 1;
                    return Ok(Some(letter));
                }
                Some(None) if turn.cancelled => self.kept.push(turn.kept),
                Some(None) => return Err(lost("read", &self.queue, "its channel was closed")),
                None => {
                    self.consumer = Some(turn);
                    if !self.channel.carries() {
                        return Err(lost("read", &self.queue, "the messages are back on it"));
                    }
                    silences += 1;
                    match self.admin.depth(&self.queue).await? {
                        Some(depth) if depth.ready > 0 && silences < SILENCES => {}
                        Some(depth) if depth.ready > 0 => {
                            return Err(Error::broker("read", &self.queue, "it hands nothing out"));
                        }
                        _ => self.left = 0,
                    }
                }
            }
        }
        Ok(None)
    }

    /// Gives back what was kept, in its order, and what was not seen.
    pub async fn end(mut self) -> Result<()> {
        while self
            .consumer
            .as_ref()
            .is_some_and(|turn| !turn.kept.is_full())
            && let Some(unseen) = self.next().await?
        {
            unseen.keep();
        }
        if let Some(turn) = self.consumer.take() {
            let cancel = self
                .channel
                .basic_cancel(turn.consumer.tag(), BasicCancelOptions::default());
            self.channel
                .live
                .ask("give back messages of", &self.queue, cancel)
                .await?;
            self.kept.push(turn.kept);
        }
        // One after another: a quorum queue puts what comes back in the order it comes.
        let back = BasicNackOptions {
            multiple: true,
            requeue: true,
        };
        let kept: usize = self
            .kept
            .iter()
            .map(|it| it.count.load(Ordering::Relaxed))
            .sum();
        let before = self.ready().await?;
        for kept in &self.kept {
            let tag = kept.last.load(Ordering::Relaxed);
            if tag == 0 {
                continue;
            }
            let nacked = self.channel.basic_nack(tag, back);
            self.channel
                .live
                .ask("give back messages of", &self.queue, nacked)
                .await?;
        }
        // A busy quorum queue of 4.0 has acks wait in the channel, and forgets them with it. They go
        // out before what is given back.
        let began = Instant::now();
        while self.ready().await? < before + kept && began.elapsed() < BACK {
            client().sleep(SILENCE / 20).await;
        }
        // Its answer tells that the broker has read all that was settled before.
        let closed = self.channel.close(200, "done".into());
        self.channel
            .live
            .ask("give back messages of", &self.queue, closed)
            .await
    }

    async fn ready(&self) -> Result<usize> {
        let depth = self.admin.depth(&self.queue).await?;
        Ok(depth.map_or(0, |depth| depth.ready as usize))
    }

    async fn subscribe(&self) -> Result<Turn> {
        let tag = format!("queuey-cli-{}", Uuid::new_v4().simple());
        let consume = self.channel.basic_consume(
            self.queue.as_str().into(),
            tag.into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        let consumer = self.channel.live.ask("read", &self.queue, consume).await?;
        Ok(Turn {
            consumer,
            kept: Arc::default(),
            cancelled: false,
        })
    }
}
