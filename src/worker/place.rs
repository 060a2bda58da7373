//! Where a handler panicked. The panic does not tell who catches it; it tells a hook.

use std::{
    any::Any,
    cell::Cell,
    panic::{self, PanicHookInfo},
    sync::Once,
    thread,
};

use crate::{error::panic_text, limits::cut};

/// As much of a panic's words as tells it from another.
const ENOUGH: usize = 256;

thread_local! {
    static LAST: Cell<Option<Noted>> = const { Cell::new(None) };
}

/// The last panic of a thread.
struct Noted {
    said: Option<String>,
    place: String,
}

/// Puts a hook before the one that is there, once in this process: it notes the place and calls
/// the other.
pub(super) fn watch() {
    static WATCHED: Once = Once::new();
    // In a panic, no hook can be set.
    if thread::panicking() {
        return;
    }
    WATCHED.call_once(|| {
        let theirs = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            note(info);
            theirs(info);
        }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let noted = info.location().map(|place| Noted {
        said: panic_text(info.payload()).map(|it| cut(it, ENOUGH).into()),
        place: place.to_string(),
    });
    // A thread that ends has no place to note it.
    let _ = LAST.try_with(|last| last.set(noted));
}

/// Where the panic with this payload came from, caught on this thread just now.
///
/// What was resumed, for instance from another thread, was never told to a hook, and is not to get
/// the place of an earlier panic: hence the comparison.
pub(super) fn of(payload: &(dyn Any + Send)) -> Option<String> {
    let noted = LAST.try_with(Cell::take).ok()??;
    let same = noted.said.as_deref() == panic_text(payload).map(|it| cut(it, ENOUGH));
    same.then_some(noted.place)
}
