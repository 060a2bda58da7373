//! [`Cause`]: what a run failed with, and what its type no longer tells.

use std::{any::type_name, error::Error, fmt, ops::Deref, panic::Location};

use crate::BoxError;

/// What a run failed with: any error, with the name of its type and the place it came from.
///
/// Dereferences to the error, to `downcast_ref` for instance.
pub struct Cause {
    error: BoxError,
    type_name: fn() -> &'static str,
    place: &'static Location<'static>,
}

impl Cause {
    /// The name of the error's type; none for what was a text, or boxed before.
    pub fn type_name(&self) -> Option<&'static str> {
        let name = (self.type_name)();
        let says_nothing = ["&", "alloc::string::", "alloc::borrow::", "alloc::boxed::"];
        let says = !says_nothing.iter().any(|it| name.starts_with(it));
        says.then_some(name)
    }

    /// Of the `?` or the call that made it.
    pub fn place(&self) -> &'static Location<'static> {
        self.place
    }

    /// The error itself.
    pub fn into_inner(self) -> BoxError {
        self.error
    }
}

impl<E: Into<BoxError>> From<E> for Cause {
    #[track_caller]
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            type_name: type_name::<E>,
            place: Location::caller(),
        }
    }
}

impl Deref for Cause {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.error
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::JobError;

    #[test]
    fn a_verdict_is_as_small_as_its_largest_part() {
        assert_eq!(size_of::<JobError>(), 40);
    }
}
