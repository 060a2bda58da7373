//! An application on tokio: handlers are tokio tasks and may use all of tokio.
#![allow(unreachable_pub, reason = "an example has no outside")]

mod greet;

use queuey_rabbitmq::{Error, Runtime};

#[tokio::main]
async fn main() -> Result<(), Error> {
    greet::greet("tokio", Runtime::tokio()).await
}
