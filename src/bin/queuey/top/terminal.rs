//! [`Screen`]: the terminal, which is as it was when this ends, however it ends.

use std::{io, thread};

use async_channel::Sender;
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, KeyEventKind},
    layout::{Position, Rect},
};

use super::{Event, screen, state::State};
use crate::failure::Failure;

pub(crate) struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal; a panic gives it back before it is told.
    pub(crate) fn open() -> Result<Self, Failure> {
        ratatui::try_init().map(Self).map_err(|error| {
            ratatui::restore();
            Failure::Failed(format!("cannot draw on this terminal: {error}"))
        })
    }

    /// Draws all of it the next time. A terminal that was small for a moment has lost what it showed.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        let size = self.0.size()?;
        self.0.resize(Rect::from((Position::ORIGIN, size)))
    }

    pub(crate) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        self.0.draw(|frame| screen::draw(frame, state))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Hears the terminal on a thread of its own, which reading blocks.
pub(crate) fn listen(events: Sender<Event>) {
    thread::spawn(move || {
        loop {
            let heard = match event::read() {
                Ok(event::Event::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
                Ok(event::Event::Resize(..)) => Event::Resized,
                Ok(_) => continue,
                Err(error) => {
                    let _ = events.send_blocking(Event::Deaf(error));
                    return;
                }
            };
            if events.send_blocking(heard).is_err() {
                return;
            }
        }
    });
}
