//! What is drawn, on terminals of all sizes.

use std::time::{Duration, Instant};

use ratatui::{Terminal, backend::TestBackend, crossterm::event::KeyCode};

use super::{
    screen::draw,
    snapshot::{Counts, Snapshot},
    state::{Entry, Letters, Link, Loaded, Question, State, Story, View},
};

fn counts(queue: &str, ready: u64, dead: Option<u64>) -> Counts {
    Counts {
        queue: queue.into(),
        ready: Some(ready),
        consumers: Some(2),
        dead,
        ..Counts::default()
    }
}

fn state() -> State {
    let queues = ["emails".to_owned(), "没有".to_owned()];
    let interval = Duration::from_secs(2);
    let mut state = State::new(
        "amqp://guest@localhost:5672/%2f".into(),
        &queues,
        interval,
        true,
    );
    let start = Instant::now();
    for (second, ready) in [(0, 10), (2, 40)] {
        let missing = Counts {
            queue: "没有".into(),
            trouble: Some("there is no such queue".into()),
            ..Counts::default()
        };
        state.take(Snapshot {
            at: start + Duration::from_secs(second),
            queues: vec![counts("emails", ready, Some(3)), missing],
        });
    }
    state
}

fn drawn(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_wide_screen_has_everything() {
    let screen = drawn(&mut state(), 100, 10);
    let line = screen.lines().find(|line| line.contains("emails")).unwrap();
    let words: Vec<_> = line.trim_matches('"').split_whitespace().collect();
    assert_eq!(
        words,
        ["emails", "40", "+15", "▃█", "3", "0", "██", "2", "?"]
    );
    assert!(screen.contains("没有: there is no such queue"), "{screen}");
    assert!(screen.contains("connected  amqp://guest@localhost:5672/%2f  every 2s"));
}

#[test]
fn a_narrow_screen_has_what_matters() {
    let screen = drawn(&mut state(), 26, 6);
    let line = screen.lines().find(|line| line.contains("emails")).unwrap();
    let words: Vec<_> = line.trim_matches('"').split_whitespace().collect();
    assert_eq!(words, ["emails", "40", "3"], "{screen}");
}

#[test]
fn a_lost_connection_is_said_with_its_reason() {
    let mut state = state();
    state.link = Link::Lost(Instant::now(), "reset by peer".into());
    let screen = drawn(&mut state, 60, 12);
    assert!(screen.contains("connection lost 0s ago"), "{screen}");
    assert!(screen.contains("reset by peer"), "{screen}");
}

#[test]
fn on_a_narrow_screen_a_reason_is_read_to_its_end() {
    let mut state = state();
    let why = "cannot connect to `amqp://guest@broker.example:5672/%2f`: refused";
    state.link = Link::Lost(Instant::now(), why.into());
    let screen = drawn(&mut state, 26, 18);
    assert!(screen.contains("refused"), "{screen}");
    state.question = Some(Question {
        queue: "emails".into(),
        id: "6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab".into(),
    });
    let screen = drawn(&mut state, 20, 5);
    assert!(screen.contains("Replay? y/n"), "{screen}");
}

#[test]
fn a_story_scrolls_to_the_end_of_its_longest_line() {
    let mut state = state();
    let entry = Entry {
        story: format!("type a\npayload {}last", "鍵".repeat(2000)),
        ..Entry::default()
    };
    let story = Story { entry, scrolled: 0 };
    state.view = View::Story(Letters::of("emails"), story);
    let press = |state: &mut State, key: KeyCode| {
        state.key(key.into());
        drawn(state, 21, 10)
    };
    assert!(press(&mut state, KeyCode::Home).contains("type a"));
    let end = press(&mut state, KeyCode::End);
    assert!(end.contains("last") && !end.contains("type a"), "{end}");
    assert_eq!(press(&mut state, KeyCode::Down), end);
    assert_ne!(press(&mut state, KeyCode::PageUp), end);
    assert!(press(&mut state, KeyCode::Home).contains("type a"));
}

#[test]
fn every_view_fits_every_size() {
    let entry = Entry {
        id: "6f6c8a56-2f0f-4e53-a8ec-4b6c8de0d1ab".into(),
        cells: ["größe", "4", "2h", "exhausted", "鍵\u{301} fehlt\u{1b}[31m"].map(Into::into),
        story: "type größe\n鍵鍵鍵鍵鍵鍵鍵鍵鍵鍵鍵\n\nend".into(),
        is_job: true,
    };
    let letters = |loaded| {
        let mut letters = Letters::of("emails");
        letters.loaded = loaded;
        letters.selected.select(Some(0));
        letters
    };
    let first = || Loaded::First(vec![entry.clone(); 30], 99);
    let story = Story {
        entry: entry.clone(),
        scrolled: 3,
    };
    let views = [
        View::Queues,
        View::Letters(letters(Loaded::Not)),
        View::Letters(letters(Loaded::Failed("no".into()))),
        View::Letters(letters(first())),
        View::Story(letters(first()), story),
    ];
    let mut state = state();
    for view in views {
        state.view = view;
        for help in [false, true] {
            state.help = help;
            state.question = help.then(|| Question {
                queue: "emails".into(),
                id: entry.id.clone(),
            });
            for (width, height) in [(1, 1), (3, 2), (20, 5), (5, 40), (300, 3), (80, 24)] {
                let screen = drawn(&mut state, width, height);
                assert!(!screen.contains('\u{1b}'));
            }
        }
    }
}
