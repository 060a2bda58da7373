//! Pure: one field of a body changed, every other byte kept.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// `body` with this attempt.
///
/// # Errors
/// When it is not an envelope.
pub fn with_attempt(body: &[u8], attempt: u32) -> serde_json::Result<Vec<u8>> {
    let fields: Fields<'_> = serde_json::from_slice(body)?;
    Ok(spliced(body, fields.attempt, attempt.to_string()))
}

/// `body` with this queue as the job's own.
///
/// # Errors
/// When it is not an envelope.
pub fn with_queue(body: &[u8], queue: &str) -> serde_json::Result<Vec<u8>> {
    let fields: Fields<'_> = serde_json::from_slice(body)?;
    Ok(spliced(body, fields.queue, serde_json::to_string(queue)?))
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    attempt: &'a RawValue,
    #[serde(borrow)]
    queue: &'a RawValue,
}

fn spliced(body: &[u8], value: &RawValue, new: String) -> Vec<u8> {
    let Range { start, end } = place(body, value.get());
    [&body[..start], new.as_bytes(), &body[end..]].concat()
}

/// Where `part`, which was borrowed from `whole`, is in it.
fn place(whole: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_field_changes() {
        let body =
            br#" {"later": [1, 2.0],"attempt" : 7, "queue":"a\u0062","payload":{"attempt":7}}"#;

        let first = with_attempt(body, 1).unwrap();
        let moved = with_queue(body, "c\"d").unwrap();

        assert_eq!(
            String::from_utf8(first).unwrap(),
            r#" {"later": [1, 2.0],"attempt" : 1, "queue":"a\u0062","payload":{"attempt":7}}"#
        );
        assert_eq!(
            String::from_utf8(moved).unwrap(),
            r#" {"later": [1, 2.0],"attempt" : 7, "queue":"c\"d","payload":{"attempt":7}}"#
        );
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        assert!(with_attempt(b"{}", 1).is_err());
        assert!(with_queue(b"\xff", "q").is_err());
    }
}
