//! [`Hook`]: the [`DeadLetterHook`] of a worker, its type forgotten.

use std::{fmt::Display, time::Duration};

use super::panic::Contained;
use crate::{DeadLetter, DeadLetterHook, Runtime};

/// How long a hook may take: it holds a slot meanwhile.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Hook(Box<dyn Hear>);

impl Hook {
    pub(super) fn new(hook: impl DeadLetterHook) -> Self {
        Self(Box::new(hook))
    }

    /// Reports `letter`; whatever the hook does to that, `job` is dead-lettered afterwards.
    pub(super) async fn tell(&self, runtime: &Runtime, job: &impl Display, letter: DeadLetter) {
        match runtime.timeout(LIMIT, self.0.hear(letter)).await {
            Some(Ok(())) => {}
            Some(Err(panic)) => {
                log::error!("{job}: the dead-letter hook {panic}; dead-lettering goes on");
            }
            None => {
                log::error!("{job}: the dead-letter hook took {LIMIT:?}; dead-lettering goes on");
            }
        }
    }
}

trait Hear: Send + Sync {
    fn hear(&self, letter: DeadLetter) -> Contained<'_, ()>;
}

impl<H: DeadLetterHook> Hear for H {
    fn hear(&self, letter: DeadLetter) -> Contained<'_, ()> {
        Contained::new(async move { self.on_dead_letter(letter).await })
    }
}
