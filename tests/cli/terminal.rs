//! [`Terminal`]: the program on a terminal, as a person has it in front of them.

use std::{
    io::{Read, Write},
    num::NonZeroU16,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex},
    thread,
};

use pty_process::{
    Size,
    blocking::{Command as PtyCommand, Pty, open},
};
use rustix::termios::{InputModes, LocalModes, OutputModes, tcgetattr};
use vt100::Parser;

use crate::support::{Broker, until};

pub struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    parser: Arc<Mutex<Parser>>,
    /// Before the program.
    modes: Modes,
}

type Modes = (InputModes, OutputModes, LocalModes);

impl Terminal {
    /// The program with these arguments on a terminal of 30 lines, 130 columns each.
    pub fn run(broker: &Broker, arguments: &[&str]) -> Self {
        Self::with(&broker.url, arguments, &[])
    }

    /// The program with the broker at `url`, and more in its environment.
    pub fn with(url: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        const SIZE: (u16, u16) = (30, 130);
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(SIZE.0, SIZE.1)).unwrap();
        let modes = modes(&pty);
        let child = PtyCommand::new(env!("CARGO_BIN_EXE_queuey"))
            .args(arguments)
            .env("AMQP_URL", url)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .envs(environment.iter().copied())
            .spawn(pts)
            .unwrap();
        let pty = Arc::new(pty);
        let parser = Parser::new(lines(SIZE.0), lines(SIZE.1), 0);
        let parser = Arc::new(Mutex::new(parser));
        let (from, screen) = (pty.clone(), parser.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error is the end of the program.
            while let Ok(read @ 1..) = (&*from).read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..read]);
            }
        });
        Self {
            pty,
            child,
            parser,
            modes,
        }
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// Waits until the screen shows each of `texts`.
    pub async fn shows(&self, texts: &[&str]) {
        self.until(&format!("{texts:?}"), |screen| {
            texts.iter().all(|text| screen.contains(text))
        })
        .await;
    }

    /// Waits until what the screen shows is as `is_so` says, which `what` tells.
    pub async fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let told_if_it_fails = Told(self);
        until(what, async || is_so(&self.text())).await;
        std::mem::forget(told_if_it_fails);
    }

    pub fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let mut parser = self.parser.lock().unwrap();
        parser.set_size(lines(rows), lines(columns));
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    pub fn signal(&self, signal: &str) {
        send(signal, &self.child);
    }

    /// Waits for the end of the program, and that it has left the terminal as it was.
    pub async fn ends(&mut self) {
        let mut status: Option<ExitStatus> = None;
        until("the end of the program", || {
            status = self.child.try_wait().unwrap();
            std::future::ready(status.is_some())
        })
        .await;
        assert_eq!(status.unwrap().code(), Some(0), "{}", self.text());
        until("the terminal as it was", async || {
            let parser = self.parser.lock().unwrap();
            !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
        })
        .await;
        assert_eq!(modes(&self.pty), self.modes);
    }

    /// Whether anything on the screen has a colour.
    pub fn has_color(&self) -> bool {
        let parser = self.parser.lock().unwrap();
        let screen = parser.screen();
        let (rows, columns) = screen.size();
        let mut cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |it| (row, it)));
        cells.any(|(row, column)| {
            let cell = screen.cell(row, column);
            cell.is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells a test that fails what was on the screen.
struct Told<'a>(&'a Terminal);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        eprintln!("the screen:\n{}", self.0.text());
    }
}

/// Sends `child` a signal, such as `TERM`.
pub fn send(signal: &str, child: &Child) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// How the terminal treats what is typed and shown.
fn modes(pty: &Pty) -> Modes {
    let all = tcgetattr(pty).unwrap();
    (all.input_modes, all.output_modes, all.local_modes)
}

fn lines(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}
