//! The derive macros of queuey-rabbitmq; use them through that crate.

mod attr;
mod duration;
mod job;
mod queues;
mod retry;
mod snake_case;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, Result, parse_macro_input};

/// Makes a fieldless enum a `QueueSet`, one queue per variant.
///
/// - `#[queues(prefix = "…", crate = "…")]` on the enum: a queue is called `prefix.name`; where
///   the library is found, `::queuey_rabbitmq` by default.
/// - `#[queue(…)]` on a variant: `name` (the variant in snake case), `prefetch` (16), `durable`
///   (`true`), `message_ttl`, `max_priority` (10; 0 is off), `kind` (`"classic"` or `"quorum"`),
///   `consumer_timeout` and `retry(…)` (no retries).
/// - `retry(…)`: `max_attempts` (3) and `backoff`, which is `"none"`, `"fixed"` with `delay`, or
///   `"exponential"` (the default) with `base` (`"1s"`), `factor` (2.0), `max` (`"5m"`) and
///   `jitter` (`true`). Durations are an integer with `ms`, `s`, `m`, `h` or `d`.
///
/// ```
/// use queuey_rabbitmq::prelude::*;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
/// #[queues(prefix = "shop")]
/// enum Queue {
///     #[queue(prefetch = 50, retry(max_attempts = 5, base = "500ms"))]
///     Emails,
///     ImageResize,
/// }
///
/// assert_eq!(Queue::ImageResize.name(), "shop.image_resize");
/// ```
#[proc_macro_derive(Queues, attributes(queues, queue))]
pub fn queues(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expanded(queues::expand(&input))
}

/// Makes a struct or enum a `Job`.
///
/// `#[job(…)]` takes `queue`, a variant of the set; `name` (by default the module path and the
/// type, so moving the type strands jobs in flight); `aliases`, the earlier names; `retry(…)`,
/// as on a queue (by default the queue's); and `crate`.
///
/// ```
/// use queuey_rabbitmq::prelude::*;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
/// enum Queue {
///     Emails,
/// }
///
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(queue = Queue::Emails, name = "welcome", aliases = ["greeting"])]
/// struct Welcome {
///     user: u64,
/// }
///
/// assert_eq!(Welcome::NAME, "welcome");
/// ```
#[proc_macro_derive(Job, attributes(job))]
pub fn job(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expanded(job::expand(&input))
}

fn expanded(code: Result<proc_macro2::TokenStream>) -> TokenStream {
    code.unwrap_or_else(Error::into_compile_error).into()
}
