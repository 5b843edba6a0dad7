//! The members of a JSON object with their byte ranges, so that one can be removed and the rest keeps its bytes.
//!
//! The text is known to be JSON, as every [`RawValue`] is, so stepping over strings and counting brackets is enough.
//!
//! [`RawValue`]: serde_json::value::RawValue

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use memchr::memchr2;
use serde::de::{Deserialize, Deserializer, Visitor};

/// One member of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// The key, unescaped; bytes, because a key may hold a lone surrogate, which no `str` can.
    pub(crate) key: Cow<'a, [u8]>,
    /// From the key's opening quote to the value's last byte.
    pub(crate) span: Range<usize>,
    pub(crate) value: &'a str,
}

/// Whether a value, without white space before it, is an object.
pub(crate) fn is_object(value: &str) -> bool {
    value.starts_with('{')
}

/// The members of an object in their order. Any other value has none.
pub(crate) fn members(value: &str) -> impl Iterator<Item = Member<'_>> {
    let mut rest = if is_object(value) { 1 } else { value.len() };
    std::iter::from_fn(move || {
        // Between two members there are only white space and a comma, and after the last no quote.
        let start = find(value, rest, |byte| byte == b'"')?;
        let key_end = end_of_string(value, start);
        let colon = find(value, key_end, |byte| byte == b':').expect("BUG: a key without a value");
        let value_start = find(value, colon + 1, |byte| !byte.is_ascii_whitespace())?;
        rest = end_of_value(value, value_start);
        Some(Member { key: key(&value[start..key_end]), span: start..rest, value: &value[value_start..rest] })
    })
}

fn end_of_value(text: &str, start: usize) -> usize {
    match text.as_bytes()[start] {
        b'"' => end_of_string(text, start),
        b'{' | b'[' => end_of_brackets(text, start),
        // A number or a word.
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

/// Past the closing quote of the string that opens at `start`.
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

/// The position of the first such byte from `start` on.
fn find(text: &str, start: usize, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let rest = text.as_bytes().get(start..)?;
    rest.iter().position(|&byte| is_wanted(byte)).map(|after| start + after)
}

/// A key's bytes, from its text with the quotes. serde_json reads the escapes.
fn key(quoted: &str) -> Cow<'_, [u8]> {
    let inner = &quoted.as_bytes()[1..quoted.len() - 1];
    if !inner.contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let Key(bytes) = serde_json::from_str(quoted).expect("BUG: any key can be read as bytes");
    Cow::Owned(bytes)
}

struct Key(Vec<u8>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(KeyVisitor).map(Self)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object key")
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<Vec<u8>, E> {
        Ok(key.to_vec())
    }
}

#[cfg(test)]
mod tests {
    //! Compared with serde_json, which reads the same members in its own way.

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::value::RawValue;

    use super::*;

    /// Keys and values as serde_json reads them.
    struct Read<'a>(Vec<(Vec<u8>, &'a RawValue)>);

    impl<'de> Deserialize<'de> for Read<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Map;
            impl<'de> Visitor<'de> for Map {
                type Value = Read<'de>;

                fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Read<'de>, A::Error> {
                    let mut members = Vec::new();
                    while let Some((Key(key), value)) = map.next_entry()? {
                        members.push((key, value));
                    }
                    Ok(Read(members))
                }
            }
            deserializer.deserialize_map(Map)
        }
    }

    const PIECES: [&str; 14] =
        [r#"\""#, r"\\", r"\u0022", r"\ud800", "{", "}", "[", "]", ",", ":", " ", "é", "key", "_"];

    /// Strings with what could be taken for the end of a string or of a value.
    fn string() -> impl Strategy<Value = String> {
        vec(select(&PIECES[..]), 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
    }

    fn space() -> impl Strategy<Value = &'static str> {
        select(&["", "", " ", "\t", "\r\n"][..])
    }

    fn object_of(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
        let member = (space(), string(), space(), space(), value, space())
            .prop_map(|(a, key, b, c, value, d)| format!("{a}{key}{b}:{c}{value}{d}"));
        (vec(member, 0..5), space()).prop_map(|(members, space)| match members.as_slice() {
            [] => format!("{{{space}}}"),
            members => format!("{{{}}}", members.join(",")),
        })
    }

    fn value() -> impl Strategy<Value = String> {
        let plain =
            select(&["0", "-1.50", "1E400", "null", "true", "false", "[]", "{}"][..]).prop_map(Into::into);
        prop_oneof![plain, string()].prop_recursive(3, 16, 4, |inner| {
            let array = vec((space(), inner.clone(), space()), 0..4).prop_map(|items| {
                let items: Vec<String> =
                    items.into_iter().map(|(a, item, b)| format!("{a}{item}{b}")).collect();
                format!("[{}]", items.join(","))
            });
            prop_oneof![array, object_of(inner)]
        })
    }

    proptest! {
        #[test]
        fn the_members_are_those_that_serde_json_reads(text in object_of(value())) {
            let Read(expected) = serde_json::from_str(&text).expect("the test gives valid JSON");
            let found: Vec<Member<'_>> = members(&text).collect();
            prop_assert_eq!(found.len(), expected.len(), "{}", text);
            for (member, (key, value)) in found.iter().zip(expected) {
                prop_assert_eq!(member.key.as_ref(), key);
                prop_assert_eq!(member.value, value.get());
                let spanned = &text[member.span.clone()];
                prop_assert!(spanned.starts_with('"') && spanned.ends_with(value.get()), "{}", spanned);
            }
        }

        #[test]
        fn what_is_no_object_has_no_members(text in value()) {
            prop_assume!(!text.starts_with('{'));
            prop_assert_eq!(members(&text).count(), 0);
        }
    }

    #[test]
    fn a_span_goes_from_the_key_to_the_value() {
        let text = r#"{ "a" : [1, {"b":2}] , "c\"":"}" }"#;
        let spans: Vec<&str> = members(text).map(|member| &text[member.span]).collect();
        assert_eq!(spans, [r#""a" : [1, {"b":2}]"#, r#""c\"":"}""#]);
    }
}
