//! The derive macros of queuey-rabbitmq.

use proc_macro::TokenStream;

/// Placeholder.
#[proc_macro_derive(Queues, attributes(queues, queue))]
pub fn queues(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Placeholder.
#[proc_macro_derive(Job, attributes(job))]
pub fn job(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
