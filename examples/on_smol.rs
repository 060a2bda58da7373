//! An application on smol: handlers run on its executor.
#![allow(unreachable_pub, reason = "an example has no outside")]

mod greet;

use queuey_rabbitmq::{Error, Runtime};

fn main() -> Result<(), Error> {
    smol::block_on(greet::greet("smol", Runtime::smol()))
}
