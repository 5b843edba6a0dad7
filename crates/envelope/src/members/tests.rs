//! Held against serde_json, which reads the same members in its own way.

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
            let items: Vec<String> = items.into_iter().map(|(a, item, b)| format!("{a}{item}{b}")).collect();
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
