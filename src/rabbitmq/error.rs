//! What an answer of lapin's means to our callers.

use lapin::ErrorKind;

use crate::{BoxError, Error};

const ACCESS_REFUSED: u16 = 403;
const PRECONDITION_FAILED: u16 = 406;
const NOT_ALLOWED: u16 = 530;

/// Says what was being done, and to which queue, when lapin failed.
pub(super) fn broker(action: &'static str, queue: &str) -> impl FnOnce(lapin::Error) -> Error {
    move |error| {
        let subject = queue.to_owned();
        match error.kind() {
            ErrorKind::ProtocolError(answer) => match answer.get_id() {
                PRECONDITION_FAILED => {
                    let words = answer.get_message().to_string();
                    refused(action, queue, &words, error)
                }
                ACCESS_REFUSED => Error::AccessRefused {
                    action,
                    subject,
                    source: cause(error),
                },
                _ if error.is_amqp_hard_error() => disconnected(action, subject, error),
                _ => Error::broker(action, subject, cause(error)),
            },
            ErrorKind::ChannelsLimitReached | ErrorKind::SerialisationError(_) => {
                Error::broker(action, subject, cause(error))
            }
            _ => disconnected(action, subject, error),
        }
    }
}

/// Says whom we could not connect to, and why.
pub(super) fn connecting(address: &str) -> impl FnOnce(lapin::Error) -> Error {
    move |error| {
        let (action, subject) = ("connect to", address.to_owned());
        match error.kind() {
            ErrorKind::ProtocolError(answer)
                if [ACCESS_REFUSED, NOT_ALLOWED].contains(&answer.get_id()) =>
            {
                Error::AccessRefused {
                    action,
                    subject,
                    source: cause(error),
                }
            }
            _ => Error::broker(action, subject, cause(error)),
        }
    }
}

fn disconnected(action: &'static str, subject: String, error: lapin::Error) -> Error {
    Error::Disconnected {
        action,
        subject,
        source: cause(error),
    }
}

/// Why, without the words that lapin's own text repeats it with.
fn cause(error: lapin::Error) -> BoxError {
    match error.kind() {
        ErrorKind::IOError(error) | ErrorKind::RuntimeShutdownError(error) => {
            Box::new(error.clone())
        }
        ErrorKind::ProtocolError(answer) => answer.get_message().as_str().into(),
        // What else it is, lapin's parser cannot say.
        ErrorKind::ParsingError(_) => "the answer is not AMQP (is it the right port?)".into(),
        _ => error.into(),
    }
}

/// The broker names the argument, as in `inequivalent arg 'x-max-priority' for queue 'q' in vhost
/// '/': received the value '5' …`, or a body's size, as in `message size 20971520 is larger than
/// configured max size 16777216`.
fn refused(action: &'static str, queue: &str, words: &str, error: lapin::Error) -> Error {
    if words.contains("message size")
        && let [size, limit] = numbers(words)[..]
    {
        return Error::PayloadTooLarge {
            queue: queue.into(),
            size,
            limit,
        };
    }
    let argument = words
        .split("arg '")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    match argument {
        Some(argument) => Error::Precondition {
            queue: queue.into(),
            argument: argument.into(),
            source: cause(error),
        },
        None => Error::broker(action, queue, cause(error)),
    }
}

fn numbers(words: &str) -> Vec<usize> {
    words
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .filter(|&number| number > 999)
        .collect()
}

/// What cannot be done because a connection or channel is gone.
pub(super) fn lost(action: &'static str, subject: &str, why: &str) -> Error {
    Error::Disconnected {
        action,
        subject: subject.into(),
        source: why.into(),
    }
}
