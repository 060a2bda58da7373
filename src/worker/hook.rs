//! [`Hook`]: the [`DeadLetterHook`] of a worker, its type forgotten.

use std::{fmt::Display, time::Duration};

use super::panic::Contained;
use crate::{DeadLetter, DeadLetterHook, Runtime};

/// How long a hook may take: it holds a slot meanwhile.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Hook {
    hook: Box<dyn Hear>,
    limit: Duration,
}

impl Hook {
    pub(super) fn new(hook: impl DeadLetterHook) -> Self {
        Self {
            hook: Box::new(hook),
            limit: LIMIT,
        }
    }

    /// Reports `letter`; whatever the hook does to that, `job` is dead-lettered afterwards.
    pub(super) async fn tell(&self, runtime: &Runtime, job: &impl Display, letter: DeadLetter) {
        match runtime.timeout(self.limit, self.hook.hear(letter)).await {
            Some(Ok(())) => {}
            Some(Err(panic)) => log::error!("{job}: the dead-letter hook {panic}; {GOES_ON}"),
            None => {
                let limit = self.limit;
                log::error!("{job}: the dead-letter hook took more than {limit:?}; {GOES_ON}");
            }
        }
    }
}

const GOES_ON: &str = "the job is dead-lettered all the same";

trait Hear: Send + Sync {
    fn hear(&self, letter: DeadLetter) -> Contained<'_, ()>;
}

impl<H: DeadLetterHook> Hear for H {
    fn hear(&self, letter: DeadLetter) -> Contained<'_, ()> {
        Contained::new(async move { self.on_dead_letter(letter).await })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_lite::future::block_on;

    use super::*;
    use crate::{DeadLetterCause, Envelope, FnDeadLetterHook};

    #[test]
    fn a_hook_that_never_answers_is_dropped() {
        let hook = Hook {
            limit: Duration::from_millis(5),
            ..Hook::new(FnDeadLetterHook::new(|_| pending()))
        };
        let envelope = Envelope::raw("welcome", "emails", Default::default());
        let letter = DeadLetter::new(envelope, DeadLetterCause::Fatal, "no");

        block_on(hook.tell(&Runtime::default(), &"job", letter));
    }
}
