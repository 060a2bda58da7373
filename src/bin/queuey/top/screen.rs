//! Pure: the [`State`] as a person sees it, on a terminal of any size.

use std::time::Duration;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span, Text},
    widgets::{Cell, Paragraph, Row as TableRow, Table},
};

use super::{
    history::change,
    panels,
    snapshot::Counts,
    state::{Link, Row, State, View},
};
use crate::output::one_line;

pub(crate) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let [top, middle, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(header(state), top);
    let color = state.color;
    match &mut state.view {
        _ if state.help => panels::help(frame, middle),
        View::Queues => queues(frame, middle, state),
        View::Letters(letters) => panels::letters(frame, middle, letters, color),
        View::Story(_, story) => panels::story(frame, middle, story),
    }
    frame.render_widget(footer(state), bottom);
}

/// `style`'s colour where colours are wanted; what it says is always said in words too.
pub(crate) fn paint(has_color: bool, color: Color) -> Style {
    match has_color {
        true => Style::new().fg(color),
        false => Style::new(),
    }
}

/// How a selected row looks.
pub(crate) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
/// How headings look.
pub(crate) const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);

fn header(state: &State) -> Line<'_> {
    let interval = humantime::format_duration(state.interval);
    let (link, color) = match &state.link {
        Link::Lost(since, _) => {
            let gone = seconds(since.elapsed());
            (format!("connection lost {gone} ago"), Color::Red)
        }
        Link::Up => match state.updated.map(|at| at.elapsed()) {
            // An answer that takes longer than this was never meant to.
            Some(age) if age > state.interval * 2 + Duration::from_secs(2) => {
                let age = seconds(age);
                (format!("no answer for {age}"), Color::Yellow)
            }
            Some(_) => ("connected".into(), Color::Green),
            None => ("asking".into(), Color::Yellow),
        },
    };
    Line::from(vec![
        Span::styled(link, paint(state.color, color).patch(HEADING)),
        Span::raw(format!("  {}  every {interval}", one_line(&state.broker))),
    ])
}

fn footer(state: &State) -> Line<'_> {
    if let Some(question) = &state.question {
        let text = format!("Replay? y/n  {}", question.id);
        return Line::styled(text, SELECTED);
    }
    if let Some(notice) = &state.notice {
        return Line::styled(one_line(notice), HEADING);
    }
    Line::raw(match state.view {
        _ if state.help => "any key goes back",
        View::Queues => "q quit  ? help  ↑↓ select  Enter dead letters",
        View::Letters(_) => "q back  ? help  ↑↓ select  Enter story  r replay",
        View::Story(..) => "q back  ? help  ↑↓ scroll  r replay",
    })
}

fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs())
}

fn queues(frame: &mut Frame<'_>, area: Rect, state: &mut State) {
    let troubles = troubles(state, area.width);
    let below = u16::try_from(troubles.len()).unwrap_or(u16::MAX);
    let [table, rest] = Layout::vertical([
        Constraint::Min(0),
        Constraint::Length(below.min(area.height / 3)),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(Text::from(troubles)), rest);
    let name = |row: &Row| Span::raw(one_line(&row.counts.queue)).width();
    let widest = state.rows.iter().map(name).max().unwrap_or(0).max(5);
    let columns = Columns::fitting(table.width.into(), widest);
    let rows: Vec<_> = state
        .rows
        .iter()
        .map(|row| columns.row(&row.counts, Some(row), state.color))
        .collect();
    let widget = Table::new(rows, columns.widths())
        .header(columns.header())
        .footer(
            columns
                .row(&state.total(), None, state.color)
                .style(HEADING),
        )
        .row_highlight_style(SELECTED);
    frame.render_stateful_widget(widget, table, &mut state.selected);
}

/// What is wrong, to the end: the reason comes last.
fn troubles(state: &State, width: u16) -> Vec<Line<'static>> {
    let lost = match &state.link {
        Link::Up => None,
        Link::Lost(_, why) => Some(why.clone()),
    };
    let of_queue = state.rows.iter().filter_map(|row| {
        let trouble = row.counts.trouble.as_ref()?;
        Some(format!("{}: {trouble}", row.counts.queue))
    });
    let style = paint(state.color, Color::Red);
    let all = lost.into_iter().chain(of_queue);
    let rows = all.flat_map(|text| panels::rows(&text, width));
    rows.map(|row| Line::styled(row, style)).collect()
}

/// What there is room for.
#[derive(Debug, PartialEq, Eq)]
struct Columns {
    queue: usize,
    /// Consumers and waiting jobs.
    others: bool,
    changes: bool,
    /// How wide a history is.
    bars: usize,
}

impl Columns {
    const NUMBER: usize = 8;
    const OTHER: usize = 7;
    const CHANGE: usize = 6;

    fn fitting(width: usize, queue: usize) -> Self {
        let numbers = 2 * (Self::NUMBER + 1);
        let others = 2 * (Self::OTHER + 1);
        let changes = 2 * (Self::CHANGE + 1);
        let with_others = queue + numbers + others;
        let left = width.saturating_sub(with_others + changes);
        let bars = (left / 2).saturating_sub(1).min(30);
        Self {
            queue: queue.min(width.saturating_sub(numbers).max(5)),
            others: width >= with_others,
            changes: width >= with_others + changes,
            bars: if bars < 4 { 0 } else { bars },
        }
    }

    /// The cells that there is room for, of all there are.
    fn of<T>(&self, all: [T; 9]) -> Vec<T> {
        let (bars, changes, others) = (self.bars > 0, self.changes, self.others);
        let shown = [
            true, true, changes, bars, true, changes, bars, others, others,
        ];
        let cells = all.into_iter().zip(shown);
        cells
            .filter_map(|(cell, is_shown)| is_shown.then_some(cell))
            .collect()
    }

    fn widths(&self) -> Vec<u16> {
        let (number, change, other) = (Self::NUMBER, Self::CHANGE, Self::OTHER);
        let widths = [
            self.queue, number, change, self.bars, number, change, self.bars, other, other,
        ];
        let fit = |width| u16::try_from(width).unwrap_or(u16::MAX);
        self.of(widths.map(fit))
    }

    fn header(&self) -> TableRow<'static> {
        let right = |title| Cell::from(Line::raw(title).right_aligned());
        let left = |title| Cell::from(title);
        let cells = [
            left("QUEUE"),
            right("READY"),
            right("/s"),
            left(""),
            right("DEAD"),
            right("/s"),
            left(""),
            right("WORKERS"),
            right("WAITING"),
        ];
        TableRow::new(self.of(cells)).style(HEADING)
    }

    /// The counts of a queue, with its history, or those of all together.
    fn row(&self, counts: &Counts, row: Option<&Row>, color: bool) -> TableRow<'static> {
        let right = |text: String| Cell::from(Line::raw(text).right_aligned());
        let number = |it: Option<u64>, not: &str| it.map_or(not.into(), |it| it.to_string());
        let is_there = counts.ready.is_some();
        let no_dead = if is_there && row.is_some() { "-" } else { "?" };
        let dead_style = match counts.dead {
            Some(1..) => paint(color, Color::Red),
            _ => Style::new(),
        };
        let history = |of: fn(&Row) -> &super::history::History| match row {
            Some(row) => {
                let history = of(row);
                (change(history.per_second()), history.bars(self.bars))
            }
            None => Default::default(),
        };
        let (ready_change, ready_bars) = history(|row| &row.ready);
        let (dead_change, dead_bars) = history(|row| &row.dead);
        let cells = [
            Cell::from(one_line(&counts.queue)),
            right(number(counts.ready, "?")),
            right(ready_change),
            Cell::from(ready_bars).style(paint(color, Color::Cyan)),
            right(number(counts.dead, no_dead)).style(dead_style),
            right(dead_change),
            Cell::from(dead_bars).style(paint(color, Color::Red)),
            right(number(counts.consumers, "?")),
            right(number(counts.waiting, "?")),
        ];
        TableRow::new(self.of(cells))
    }
}
