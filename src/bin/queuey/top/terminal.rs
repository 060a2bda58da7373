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

#[cfg(all(test, unix))]
mod tests {
    use std::{env, io::Read};

    use pty_process::{
        Size,
        blocking::{Command, open},
    };
    use rustix::termios::tcgetattr;

    use super::*;

    #[test]
    #[ignore = "run by the next, which gives it a terminal"]
    fn panics() {
        let _screen = Screen::open().unwrap();
        panic!("on purpose");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let (mut pty, pts) = open().unwrap();
        pty.resize(Size::new(24, 80)).unwrap();
        let before = tcgetattr(&pty).unwrap();
        let panics = "top::terminal::tests::panics";
        let mut child = Command::new(env::current_exe().unwrap())
            .args([panics, "--exact", "--ignored", "--nocapture"])
            .spawn(pts)
            .unwrap();

        let mut said = vec![];
        // Ends with an error when the program does.
        let _ = pty.read_to_end(&mut said);

        assert!(!child.wait().unwrap().success());
        let said = String::from_utf8_lossy(&said);
        let at = |text: &str| {
            said.find(text)
                .unwrap_or_else(|| panic!("{text:?}: {said:?}"))
        };
        let (taken, left, told) = (at("\u{1b}[?1049h"), at("\u{1b}[?1049l"), at("on purpose"));
        assert!(taken < left && left < told, "{said:?}");
        let mut parser = vt100::Parser::default();
        parser.process(said.as_bytes());
        assert!(!parser.screen().alternate_screen() && !parser.screen().hide_cursor());
        let after = tcgetattr(&pty).unwrap();
        assert_eq!(after.local_modes, before.local_modes);
        assert_eq!(after.input_modes, before.input_modes);
        assert_eq!(after.output_modes, before.output_modes);
    }
}
