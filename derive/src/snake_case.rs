//! [`snake_case`]: `ImageResize` → `image_resize`.

/// The identifier in snake case; a run of capitals is one word.
pub(crate) fn snake_case(ident: &str) -> String {
    let mut snake = String::new();
    let mut before = '_';
    let mut chars = ident.chars().peekable();
    while let Some(char) = chars.next() {
        let ends_acronym = chars.peek().is_some_and(|next| next.is_lowercase());
        if char.is_uppercase() && before != '_' && (!before.is_uppercase() || ends_acronym) {
            snake.push('_');
        }
        snake.extend(char.to_lowercase());
        before = char;
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn a_capital_starts_a_word_unless_inside_an_acronym() {
        for (ident, snake) in [
            ("Emails", "emails"),
            ("ImageResize", "image_resize"),
            ("HTTPCalls", "http_calls"),
            ("XMLHTTPRequest", "xmlhttp_request"),
            ("SMS", "sms"),
            ("ABTest", "ab_test"),
            ("Straße", "straße"),
        ] {
            assert_eq!(snake_case(ident), snake);
        }
    }

    #[test]
    fn a_digit_belongs_to_the_word_before() {
        for (ident, snake) in [
            ("ImageResize2", "image_resize2"),
            ("Resize2xImages", "resize2x_images"),
            ("S3Upload", "s3_upload"),
        ] {
            assert_eq!(snake_case(ident), snake);
        }
    }

    #[test]
    fn underscores_stay_as_they_are() {
        for (ident, snake) in [
            ("Already_Snake", "already_snake"),
            ("already_snake", "already_snake"),
            ("_Hidden", "_hidden"),
        ] {
            assert_eq!(snake_case(ident), snake);
        }
    }
}
