//! [`parse`]: `"5m"` → [`Duration`].

use std::time::Duration;

/// The duration this text means, or what is wrong with it; zero is allowed.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let seconds_per_unit = match unit.trim() {
        "ms" | "s" | "" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(malformed(text)),
    };
    if digits.is_empty() {
        return Err(malformed(text));
    }
    let too_long = || format!("`{text}` is too long for a duration");
    let number: u64 = digits.parse().map_err(|_| too_long())?;
    if unit.trim() == "ms" {
        return Ok(Duration::from_millis(number));
    }
    number
        .checked_mul(seconds_per_unit)
        .map(Duration::from_secs)
        .ok_or_else(too_long)
}

fn malformed(text: &str) -> String {
    format!(
        "`{text}` is not a duration: write a whole number and `ms`, `s`, `m`, `h` or `d`, such as \"30s\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_its_unit() {
        for (text, millis) in [
            ("1500ms", 1_500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn a_bare_number_counts_seconds() {
        assert_eq!(parse("30"), Ok(Duration::from_secs(30)));
    }

    #[test]
    fn spaces_do_not_matter() {
        assert_eq!(parse(" 5 m "), Ok(Duration::from_secs(300)));
    }

    #[test]
    fn anything_else_is_malformed() {
        for text in [
            "", " ", "m", "-5s", "+5s", "1.5s", "5 min", "1h30m", "1 0s", "5S", "٣s",
        ] {
            assert_eq!(parse(text), Err(malformed(text.trim())));
        }
    }

    #[test]
    fn an_overflow_is_too_long() {
        for text in ["18446744073709551616ms", "18446744073709551615m"] {
            assert_eq!(
                parse(text),
                Err(format!("`{text}` is too long for a duration"))
            );
        }
    }
}
