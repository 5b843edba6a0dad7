//! The members of a JSON object with their byte ranges.
//!
//! The input is valid JSON, as in every [`RawValue`], so the parser only skips strings and counts brackets.
//!
//! [`RawValue`]: serde_json::value::RawValue

use std::ops::Range;

use memchr::memchr2;

#[derive(Debug)]
pub(crate) struct Member<'a> {
    /// The member's key as written, with its quotes.
    key: &'a str,
    /// The bytes from the opening quote of the key to the last byte of the value.
    pub(crate) span: Range<usize>,
    pub(crate) value: &'a str,
}

impl Member<'_> {
    /// Returns true if the member's key is `name`, escaped or not.
    pub(crate) fn is(&self, name: &str) -> bool {
        let written = &self.key[1..self.key.len() - 1];
        let is_escaped = || written.contains('\\');
        written == name
            || is_escaped() && serde_json::from_str::<String>(self.key).is_ok_and(|key| key == name)
    }
}

/// Returns true if the JSON text `value`, which must not begin with white space, is an object.
pub(crate) fn is_object(value: &str) -> bool {
    value.starts_with('{')
}

/// Returns the members of the JSON object in `value`, or no members if `value` is not an object.
pub(crate) fn members(value: &str) -> impl Iterator<Item = Member<'_>> {
    let mut rest = if is_object(value) { 1 } else { value.len() };
    std::iter::from_fn(move || {
        // Between two members there is only white space and a comma. After the last member there is no quote.
        let start = find(value, rest, |byte| byte == b'"')?;
        let key_end = end_of_string(value, start);
        let colon = find(value, key_end, |byte| byte == b':').expect("BUG: a key without a value");
        let value_start = find(value, colon + 1, |byte| !byte.is_ascii_whitespace())?;
        rest = end_of_value(value, value_start);
        Some(Member { key: &value[start..key_end], span: start..rest, value: &value[value_start..rest] })
    })
}

fn end_of_value(text: &str, start: usize) -> usize {
    match text.as_bytes()[start] {
        b'"' => end_of_string(text, start),
        b'{' | b'[' => end_of_brackets(text, start),
        // The value is a number, `true`, `false` or `null`.
        _ => find(text, start, |byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())
            .unwrap_or(text.len()),
    }
}

fn end_of_brackets(text: &str, start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    loop {
        match text.as_bytes()[at] {
            b'"' => at = end_of_string(text, at) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// Returns the position after the closing quote of the string that opens at `start`.
fn end_of_string(text: &str, start: usize) -> usize {
    let mut at = start + 1;
    loop {
        at += memchr2(b'"', b'\\', &text.as_bytes()[at..]).expect("BUG: a string without an end");
        if text.as_bytes()[at] == b'"' {
            return at + 1;
        }
        // An escaped character does not end the string.
        at += 2;
    }
}

fn find(text: &str, start: usize, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let rest = text.as_bytes().get(start..)?;
    rest.iter().position(|&byte| is_wanted(byte)).map(|after| start + after)
}

#[cfg(test)]
mod tests {
    use super::members;

    #[test]
    fn a_span_goes_from_the_key_to_the_value() {
        let text = r#"{ "a" : [1, {"b":2}] , "c\"":"}" }"#;
        let spans: Vec<&str> = members(text).map(|member| &text[member.span]).collect();
        assert_eq!(spans, [r#""a" : [1, {"b":2}]"#, r#""c\"":"}""#]);
    }
}
