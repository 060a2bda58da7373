//! Pure: what a key does to the [`State`], and what it asks for beyond.

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    widgets::TableState,
};

use super::state::{Letters, Loaded, Question, State, Story, View};

/// What a key asks for that only the broker or the program can do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Quit,
    /// Read the dead letters of this queue.
    Load(String),
    Replay(Question),
}

impl State {
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Action> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'C')) {
            return Some(Action::Quit);
        }
        if is_control {
            return None;
        }
        if let Some(question) = self.question.take() {
            let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
            self.notice = Some(match is_yes {
                true => format!("replaying {} …", question.id),
                false => "not replayed".into(),
            });
            return is_yes.then_some(Action::Replay(question));
        }
        if std::mem::take(&mut self.help) {
            return None;
        }
        self.notice = None;
        match key.code {
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char('q') | KeyCode::Esc => return self.back(),
            KeyCode::Enter => return self.enter(),
            KeyCode::Char('r') => self.ask(),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-10),
            KeyCode::PageDown => self.step(10),
            KeyCode::Home | KeyCode::Char('g') => self.step(i32::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(i32::MAX),
            _ => {}
        }
        None
    }

    fn back(&mut self) -> Option<Action> {
        match std::mem::replace(&mut self.view, View::Queues) {
            View::Queues => Some(Action::Quit),
            View::Letters(_) => None,
            View::Story(letters, _) => {
                self.view = View::Letters(letters);
                None
            }
        }
    }

    fn enter(&mut self) -> Option<Action> {
        match std::mem::replace(&mut self.view, View::Queues) {
            View::Queues => {
                let row = self.rows.get(self.selected.selected()?)?;
                let queue = row.counts.queue.clone();
                self.view = View::Letters(Letters::of(&queue));
                Some(Action::Load(queue))
            }
            View::Letters(letters) => {
                self.view = match letters.entry().cloned() {
                    Some(entry) => View::Story(letters, Story { entry, scrolled: 0 }),
                    None => View::Letters(letters),
                };
                None
            }
            story @ View::Story(..) => {
                self.view = story;
                None
            }
        }
    }

    fn ask(&mut self) {
        let (letters, entry) = match &self.view {
            View::Queues => return,
            View::Letters(letters) => (letters, letters.entry()),
            View::Story(letters, story) => (letters, Some(&story.entry)),
        };
        match entry {
            Some(entry) if entry.is_job => {
                self.question = Some(Question {
                    queue: letters.queue.clone(),
                    id: entry.id.clone(),
                });
            }
            Some(_) => self.notice = Some("what is not a job cannot be replayed".into()),
            None => {}
        }
    }

    fn step(&mut self, by: i32) {
        match &mut self.view {
            View::Queues => step(&mut self.selected, self.rows.len(), by),
            View::Letters(letters) => {
                if let Loaded::First(entries, _) = &letters.loaded {
                    step(&mut letters.selected, entries.len(), by);
                }
            }
            View::Story(_, story) => {
                // How far it goes depends on the screen.
                let by = isize::try_from(by).unwrap_or(0);
                story.scrolled = story.scrolled.saturating_add_signed(by);
            }
        }
    }
}

fn step(selected: &mut TableState, count: usize, by: i32) {
    let now = i64::try_from(selected.selected().unwrap_or(0)).unwrap_or(0);
    let last = i64::try_from(count).unwrap_or(i64::MAX) - 1;
    let to = now.saturating_add(by.into()).min(last).max(0);
    selected.select((count > 0).then_some(to.try_into().unwrap_or(0)));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::top::state::Entry;

    fn state() -> State {
        let queues = ["a".to_owned(), "b".to_owned()];
        State::new("amqp://x".into(), &queues, Duration::from_secs(2), false)
    }

    fn press(state: &mut State, keys: &[KeyCode]) -> Option<Action> {
        let mut last = None;
        for &code in keys {
            last = state.key(code.into());
        }
        last
    }

    fn letters(state: &mut State) {
        let entry = |id: &str, is_job| Entry {
            id: id.into(),
            is_job,
            story: "one\ntwo\nthree".into(),
            ..Entry::default()
        };
        state.loaded(
            "b",
            Loaded::First(vec![entry("1", true), entry("2", false)], 2),
        );
    }

    const DOWN: KeyCode = KeyCode::Char('j');
    const REPLAY: KeyCode = KeyCode::Char('r');
    const YES: KeyCode = KeyCode::Char('y');

    #[test]
    fn enter_asks_for_the_letters_of_the_selected_queue() {
        let mut state = state();
        let action = press(&mut state, &[DOWN, DOWN, KeyCode::Enter]);
        assert_eq!(action, Some(Action::Load("b".into())));
        assert_eq!(press(&mut state, &[KeyCode::Esc]), None);
        assert_eq!(press(&mut state, &[KeyCode::Esc]), Some(Action::Quit));
    }

    #[test]
    fn a_replay_takes_a_yes() {
        let mut state = state();
        press(&mut state, &[DOWN, KeyCode::Enter]);
        letters(&mut state);
        assert_eq!(press(&mut state, &[REPLAY, KeyCode::Enter]), None);
        assert_eq!(press(&mut state, &[YES]), None);
        let question = Question {
            queue: "b".into(),
            id: "1".into(),
        };
        assert_eq!(
            press(&mut state, &[REPLAY, YES]),
            Some(Action::Replay(question))
        );
    }

    #[test]
    fn what_is_no_job_is_not_replayed() {
        let mut state = state();
        press(&mut state, &[DOWN, KeyCode::Enter]);
        letters(&mut state);
        assert_eq!(press(&mut state, &[DOWN, REPLAY, YES]), None);
    }

    #[test]
    fn keys_without_letters_do_nothing() {
        let mut state = state();
        press(&mut state, &[KeyCode::Enter]);
        let keys = [KeyCode::Enter, REPLAY, DOWN, KeyCode::End, KeyCode::Home];
        assert_eq!(press(&mut state, &keys), None);
        assert_eq!(state.question, None);
    }

    #[test]
    fn control_c_quits_from_everywhere() {
        let mut state = state();
        press(&mut state, &[KeyCode::Char('?')]);
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.key(key), Some(Action::Quit));
    }
}
