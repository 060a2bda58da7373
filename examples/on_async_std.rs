//! An application on async-std: the default runtime is the one async-std runs on.
#![allow(unreachable_pub, reason = "an example has no outside")]

mod greet;

use queuey_rabbitmq::{Error, Runtime};

fn main() -> Result<(), Error> {
    async_std::task::block_on(greet::greet("async-std", Runtime::default()))
}
