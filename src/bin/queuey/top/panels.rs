//! Pure: what is behind the queues: dead letters, the story of one, and the keys.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Color,
    text::{Line, Span},
    widgets::{Cell, Paragraph, Row, Table},
};

use super::{
    screen::{HEADING, SELECTED, paint},
    state::{Entry, Letters, Loaded, Story},
};
use crate::output::one_line;

const KEYS: [&str; 7] = [
    "↑ ↓ j k    select, scroll",
    "PgUp PgDn  ten at a time",
    "Home End   first, last",
    "Enter      dead letters, story",
    "r          replay, after y",
    "q Esc      back, quit",
    "Ctrl-C     quit",
];

pub(crate) fn letters(frame: &mut Frame<'_>, area: Rect, letters: &mut Letters, color: bool) {
    let [title, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let queue = one_line(&letters.queue);
    let say = |frame: &mut Frame<'_>, text: String| {
        frame.render_widget(Line::styled(text, HEADING), title);
    };
    match &letters.loaded {
        Loaded::Not => say(frame, format!("Reading the dead letters of {queue} …")),
        Loaded::Failed(why) => {
            say(frame, format!("Cannot read the dead letters of {queue}"));
            let why: Vec<_> = rows(why, area.width).into_iter().map(Line::from).collect();
            frame.render_widget(Paragraph::new(why).style(paint(color, Color::Red)), body);
        }
        Loaded::First(entries, total) => {
            let shown = entries.len();
            say(
                frame,
                format!("Dead letters of {queue}: {shown} of {total}"),
            );
            let table = Table::new(entries.iter().map(row), widths(area.width, entries))
                .header(Row::new(["TYPE", "ATTEMPT", "AGE", "CAUSE", "REASON"]).style(HEADING))
                .row_highlight_style(SELECTED);
            frame.render_stateful_widget(table, body, &mut letters.selected);
        }
    }
}

fn row(entry: &Entry) -> Row<'static> {
    Row::new(entry.cells.iter().map(|cell| Cell::from(one_line(cell))))
}

/// What the cells take, the type at most a third of the width; the reason has the rest.
fn widths(width: u16, entries: &[Entry]) -> [Constraint; 5] {
    let widest = |place: usize| {
        let of = |entry: &Entry| Line::raw(one_line(&entry.cells[place])).width();
        entries.iter().map(of).max().unwrap_or(0)
    };
    let fit = |it: usize, least: u16| u16::try_from(it).unwrap_or(u16::MAX).max(least);
    [
        Constraint::Length(fit(widest(0), 4).min(width / 3)),
        Constraint::Length(7),
        Constraint::Length(fit(widest(2), 3)),
        Constraint::Length(fit(widest(3), 5)),
        Constraint::Fill(1),
    ]
}

/// Scrolls no further than to the last row.
pub(crate) fn story(frame: &mut Frame<'_>, area: Rect, story: &mut Story) {
    let lines = story.entry.story.lines();
    let all: Vec<_> = lines.flat_map(|line| rows(line, area.width)).collect();
    let height = usize::from(area.height);
    story.scrolled = story.scrolled.min(all.len().saturating_sub(height));
    let shown = all.into_iter().skip(story.scrolled).take(height);
    let shown: Vec<_> = shown.map(Line::from).collect();
    frame.render_widget(Paragraph::new(shown), area);
}

/// `text` in rows of so many columns, wherever they end: a payload has no words.
pub(crate) fn rows(text: &str, width: u16) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for c in one_line(text).chars() {
        let takes = Span::raw(c.encode_utf8(&mut [0; 4]) as &str).width();
        if used > 0 && used + takes > width.into() {
            rows.push(String::new());
            used = 0;
        }
        used += takes;
        rows.last_mut().expect("there is one").push(c);
    }
    rows
}

pub(crate) fn help(frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(Paragraph::new(KEYS.map(Line::raw).to_vec()), area);
}
