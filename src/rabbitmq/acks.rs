//! [`Acks`]: acks of one channel, merged while the client is busy, at once when it is not.
//!
//! One ack at a time is being written. Those that are asked for meanwhile go out together in the
//! next round, as a single frame where every older delivery is settled too.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::pin,
    sync::Mutex,
    time::{Duration, Instant},
};

use event_listener::Event;
use futures_lite::future;
use futures_util::future::try_join_all;
use lapin::options::{BasicAckOptions, BasicNackOptions};

use super::{channel::OpenChannel, live::Live, lock};
use crate::runtime::client;

/// Rounds that follow each other faster than this become one.
const LINGER: Duration = Duration::from_millis(1);

/// No round waits for more than these.
const ENOUGH: usize = 256;

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// Done with.
    Ack,
    /// Back to its queue.
    GiveBack,
    /// To the operator's dead-letter exchange, or gone.
    Reject,
}

#[derive(Debug)]
pub(super) struct Acks {
    /// So many do not wait for more: the broker sends nothing for what it waits for.
    enough: usize,
    state: Mutex<State>,
    round_ended: Event,
    handed_out: Event,
}

#[derive(Debug, Default)]
struct State {
    /// Handed out, and no answer sent.
    in_hand: BTreeSet<u64>,
    /// To be acked in the next round.
    finished: Vec<u64>,
    writing: bool,
    /// Acks asked for, and acks written, since the start.
    asked: u64,
    written: u64,
    broken: Option<lapin::Error>,
    last_round: Option<Instant>,
}

impl Acks {
    /// Of a consumer with this prefetch.
    pub(super) fn new(prefetch: u16) -> Self {
        Self {
            enough: match prefetch {
                0 => ENOUGH,
                prefetch => ENOUGH.min(usize::from(prefetch).div_ceil(4)),
            },
            state: Mutex::default(),
            round_ended: Event::new(),
            handed_out: Event::new(),
        }
    }

    /// A delivery leaves the stream.
    pub(super) fn hand_out(&self, tag: u64) {
        lock(&self.state).in_hand.insert(tag);
        self.handed_out.notify(usize::MAX);
    }

    /// Answers the delivery `tag`; returns when the answer is written.
    pub(super) async fn answer(
        &self,
        tag: u64,
        answer: Answer,
        channel: &OpenChannel,
    ) -> lapin::Result<()> {
        let requeue = match answer {
            Answer::Ack => return self.ack(tag, channel).await,
            Answer::GiveBack => true,
            Answer::Reject => false,
        };
        let mut nack = pin!(channel.basic_nack(
            tag,
            BasicNackOptions {
                multiple: false,
                requeue
            }
        ));
        // The first poll hands the frame to the client. Only behind it may a merged ack pass `tag`.
        let written = future::poll_once(nack.as_mut()).await;
        lock(&self.state).in_hand.remove(&tag);
        match written {
            Some(written) => written,
            None => before_the_end(&channel.live, nack).await,
        }
    }

    async fn ack(&self, tag: u64, channel: &OpenChannel) -> lapin::Result<()> {
        let ticket = {
            let mut state = lock(&self.state);
            state.in_hand.remove(&tag);
            state.finished.push(tag);
            state.asked += 1;
            state.asked
        };
        loop {
            let round = {
                let mut state = lock(&self.state);
                if state.written >= ticket {
                    return Ok(());
                }
                if let Some(error) = &state.broken {
                    return Err(error.clone());
                }
                let others = std::mem::replace(&mut state.writing, true);
                others.then(|| self.round_ended.listen())
            };
            match round {
                Some(ended) => ended.await,
                None => self.write(channel).await,
            }
        }
    }

    /// Waits for what is about to join in: what finishes on this executor in this moment and, when a
    /// round has just been, what is about to come. Nobody is held up by that: as soon as a delivery
    /// does not finish at once, which may need the slot of one that waits here, the wait is over.
    async fn gather(&self) {
        let end = lock(&self.state).last_round.map(|last| last + LINGER);
        let mut late = pin!(client().sleep_until(end));
        loop {
            let handed_out = self.handed_out.listen();
            self.settle_down().await;
            {
                let state = lock(&self.state);
                if !state.in_hand.is_empty() || state.finished.len() >= self.enough {
                    return;
                }
            }
            let more = async {
                handed_out.await;
                true
            };
            let late = async {
                late.as_mut().await;
                false
            };
            if !future::or(late, more).await {
                return;
            }
        }
    }

    /// Waits while deliveries finish on this executor. One that was just handed out takes two turns:
    /// for its task to be there, and to run.
    async fn settle_down(&self) {
        let mut joined = lock(&self.state).finished.len();
        let mut still = 0;
        while still < 2 && joined < self.enough {
            future::yield_now().await;
            let finished = lock(&self.state).finished.len();
            still = if finished > joined { 0 } else { still + 1 };
            joined = finished;
        }
    }

    /// Writes what is finished by now.
    async fn write(&self, channel: &OpenChannel) {
        let _round = Round(self);
        self.gather().await;
        let (frames, asked) = {
            let mut state = lock(&self.state);
            state.last_round = Some(Instant::now());
            let first_in_hand = state.in_hand.first().copied();
            let finished = std::mem::take(&mut state.finished);
            (merged(finished, first_in_hand), state.asked)
        };
        let frames = frames
            .into_iter()
            .map(|(tag, multiple)| channel.basic_ack(tag, BasicAckOptions { multiple }));
        match before_the_end(&channel.live, try_join_all(frames)).await {
            Ok(_) => lock(&self.state).written = asked,
            Err(error) => lock(&self.state).broken = Some(error),
        }
    }
}

/// lapin may forget what it is asked in the moment the connection ends.
async fn before_the_end<T>(
    live: &Live,
    written: impl Future<Output = lapin::Result<T>>,
) -> lapin::Result<T> {
    future::or(written, async {
        live.ended().await;
        Err(lapin::ErrorKind::InvalidConnectionState(lapin::ConnectionState::Closed).into())
    })
    .await
}

/// Lets the next round begin, also when this one was dropped half-way.
struct Round<'a>(&'a Acks);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).writing = false;
        self.0.round_ended.notify(usize::MAX);
    }
}

/// The frames that ack `finished`: one for all that are older than the first in hand, one for each
/// other.
fn merged(mut finished: Vec<u64>, first_in_hand: Option<u64>) -> Vec<(u64, bool)> {
    finished.sort_unstable();
    let older = match first_in_hand {
        None => finished.len(),
        Some(first) => finished.partition_point(|tag| *tag < first),
    };
    let single = finished[older..].iter().map(|tag| (*tag, false));
    match finished[..older] {
        [] => single.collect(),
        [.., last] => [(last, older > 1)].into_iter().chain(single).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_all_in_hand_is_acked_at_once() {
        assert_eq!(merged(vec![3, 1, 2], None), [(3, true)]);
        assert_eq!(merged(vec![1, 2, 5], Some(4)), [(2, true), (5, false)]);
    }

    #[test]
    fn nothing_in_hand_is_acked() {
        assert_eq!(merged(vec![4, 5], Some(3)), [(4, false), (5, false)]);
        assert_eq!(merged(vec![4], Some(5)), [(4, false)]);
        assert_eq!(merged(vec![], Some(1)), []);
    }
}
