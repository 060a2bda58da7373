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
                PRECONDITION_FAILED => refused(queue, answer.get_message().as_str(), &error),
                ACCESS_REFUSED => Error::AccessRefused {
                    action,
                    subject,
                    source: error.into(),
                },
                _ if error.is_amqp_hard_error() => disconnected(action, subject, error),
                _ => Error::broker(action, subject, error),
            },
            ErrorKind::ChannelsLimitReached | ErrorKind::SerialisationError(_) => {
                Error::broker(action, subject, error)
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
                    source: error.into(),
                }
            }
            _ => Error::broker(action, subject, error),
        }
    }
}

fn disconnected(action: &'static str, subject: String, source: impl Into<BoxError>) -> Error {
    Error::Disconnected {
        action,
        subject,
        source: source.into(),
    }
}

/// The broker names the argument, as in `inequivalent arg 'x-max-priority' for queue 'q' in vhost
/// '/': received the value '5' …`, or a body's size, as in `message size 20971520 is larger than
/// configured max size 16777216`.
fn refused(queue: &str, words: &str, error: &lapin::Error) -> Error {
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
            source: error.clone().into(),
        },
        None => Error::broker("declare", queue, error.clone()),
    }
}

fn numbers(words: &str) -> Vec<usize> {
    words
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .filter(|&number| number > 999)
        .collect()
}
