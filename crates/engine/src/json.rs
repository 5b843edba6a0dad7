//! Reads JSON that others wrote, part by part, so that one odd part spoils no other.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads an object. A derived struct would accept an array too. The error is logged, so it quotes nothing of the text.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    match text.trim_ascii_start().chars().next() {
        Some('{') => serde_json::from_str(text).map_err(without_quotes),
        _ => Err("not a JSON object".into()),
    }
}

/// An object within another: a derived struct would accept an array here too.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// serde quotes a value of the wrong type, and then says which type it expected, and where.
fn without_quotes(error: serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(", expected ") {
        Some((_, expected)) if error.is_data() => format!("wrong type, expected {expected}"),
        _ => text,
    }
}

/// The text of a string; `None` for any other value, and for a string that is not Unicode.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// The same, copied only where it has an escape.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str(raw.get()).ok().map(|Text(text)| text)
}

pub(crate) fn non_empty_string(raw: &RawValue) -> Option<String> {
    string(raw).filter(|text| !text.is_empty())
}

/// `Option<&RawValue>` reads `null` as absent; here it is a value.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}
