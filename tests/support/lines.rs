//! What the library logs in this process, from when a test listens.

use std::sync::{Mutex, Once};

use log::{Level, LevelFilter, Log, Metadata, Record};

struct Lines(Mutex<Vec<(Level, String)>>);

static LINES: Lines = Lines(Mutex::new(Vec::new()));

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.target().starts_with("queuey_rabbitmq") {
            let line = (record.level(), record.args().to_string());
            self.0.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&LINES).unwrap();
        log::set_max_level(LevelFilter::Debug);
    });
}

/// The lines in which `words` appear.
pub(crate) fn about(words: &str) -> Vec<(Level, String)> {
    let lines = LINES.0.lock().unwrap();
    let about = lines.iter().filter(|(_, line)| line.contains(words));
    about.cloned().collect()
}
