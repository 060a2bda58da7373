//! [`State`]: all that the screen shows, and nothing that draws it.

use std::time::{Duration, Instant};

use ratatui::widgets::TableState;

use super::{
    history::History,
    snapshot::{Counts, Snapshot},
};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) broker: String,
    pub(crate) interval: Duration,
    pub(crate) link: Link,
    pub(crate) updated: Option<Instant>,
    pub(crate) rows: Vec<Row>,
    pub(crate) selected: TableState,
    pub(crate) view: View,
    /// A question that the next key answers.
    pub(crate) question: Option<Question>,
    pub(crate) help: bool,
    /// What came of what was done last.
    pub(crate) notice: Option<String>,
    pub(crate) color: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    Up,
    /// Since when, and why.
    Lost(Instant, String),
}

#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) counts: Counts,
    pub(crate) ready: History,
    pub(crate) dead: History,
}

#[derive(Debug)]
pub(crate) enum View {
    Queues,
    Letters(Letters),
    Story(Letters, Story),
}

/// The dead letters of a queue.
#[derive(Debug)]
pub(crate) struct Letters {
    pub(crate) queue: String,
    pub(crate) loaded: Loaded,
    pub(crate) selected: TableState,
}

#[derive(Debug)]
pub(crate) enum Loaded {
    Not,
    /// The first ones, of so many.
    First(Vec<Entry>, u64),
    Failed(String),
}

/// A dead letter, as it was when it was looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    pub(crate) id: String,
    /// Type, attempt, age, cause and reason.
    pub(crate) cells: [String; 5],
    pub(crate) story: String,
    pub(crate) is_job: bool,
}

#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) entry: Entry,
    /// By how many rows of the screen.
    pub(crate) scrolled: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) queue: String,
    pub(crate) id: String,
}

impl State {
    pub(crate) fn new(broker: String, queues: &[String], interval: Duration, color: bool) -> Self {
        let row = |queue: &String| Row {
            counts: Counts {
                queue: queue.clone(),
                ..Counts::default()
            },
            ..Row::default()
        };
        Self {
            broker,
            interval,
            link: Link::Up,
            updated: None,
            rows: queues.iter().map(row).collect(),
            selected: TableState::new().with_selected(0),
            view: View::Queues,
            question: None,
            help: false,
            notice: None,
            color,
        }
    }

    pub(crate) fn take(&mut self, snapshot: Snapshot) {
        self.link = Link::Up;
        self.updated = Some(snapshot.at);
        let mut before = std::mem::take(&mut self.rows);
        for counts in snapshot.queues {
            let known = before
                .iter()
                .position(|row| row.counts.queue == counts.queue);
            let mut row = known.map_or_else(Row::default, |place| before.swap_remove(place));
            row.ready.add(snapshot.at, counts.ready);
            row.dead.add(snapshot.at, counts.dead);
            row.counts = counts;
            self.rows.push(row);
        }
    }

    /// The letters that are on the screen, or behind the story that is.
    pub(crate) fn letters(&mut self) -> Option<&mut Letters> {
        match &mut self.view {
            View::Queues => None,
            View::Letters(letters) | View::Story(letters, _) => Some(letters),
        }
    }

    /// What was read for the letters of `queue`, if they are still wanted.
    pub(crate) fn loaded(&mut self, queue: &str, loaded: Loaded) {
        if let Some(letters) = self.letters()
            && letters.queue == queue
        {
            let count = match &loaded {
                Loaded::First(entries, _) => entries.len(),
                _ => 0,
            };
            let place = letters.selected.selected().unwrap_or(0);
            let last = count.checked_sub(1);
            letters.selected.select(last.map(|last| place.min(last)));
            letters.loaded = loaded;
        }
    }

    /// The counts of all queues together; a sum of what is known.
    pub(crate) fn total(&self) -> Counts {
        let sum = |of: fn(&Counts) -> Option<u64>| {
            let known = self.rows.iter().filter_map(|row| of(&row.counts));
            known.reduce(u64::saturating_add)
        };
        Counts {
            queue: "total".into(),
            ready: sum(|counts| counts.ready),
            consumers: sum(|counts| counts.consumers),
            dead: sum(|counts| counts.dead),
            waiting: sum(|counts| counts.waiting),
            trouble: None,
        }
    }
}

impl Letters {
    pub(crate) fn of(queue: &str) -> Self {
        Self {
            queue: queue.into(),
            loaded: Loaded::Not,
            selected: TableState::new(),
        }
    }

    pub(crate) fn entry(&self) -> Option<&Entry> {
        match &self.loaded {
            Loaded::First(entries, _) => entries.get(self.selected.selected()?),
            _ => None,
        }
    }
}
