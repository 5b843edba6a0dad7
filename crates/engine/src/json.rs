//! Lenient parsing of JSON from other programs: a malformed member does not affect the other members.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Parses a JSON object, and refuses an array. The error does not quote the JSON, which may be confidential.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    match text.trim_ascii_start().chars().next() {
        Some('{') => serde_json::from_str(text).map_err(without_quotes),
        _ => Err("not a JSON object".into()),
    }
}

/// The members of a JSON object, unparsed. If a name occurs twice, its last value counts.
pub(crate) type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// A nested JSON object. Unlike a derived `Deserialize`, it does not accept an array.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectOf<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectOf<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectOf(PhantomData))
    }
}

/// Returns serde's error message without the value that it may quote.
fn without_quotes(error: serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(", expected ") {
        Some((_, expected)) if error.is_data() => format!("wrong type, expected {expected}"),
        _ => text,
    }
}

/// Decodes a JSON string without loss. Returns `None` for any other value, or for invalid Unicode.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// Decodes a JSON string that is only shown to people.
pub(crate) fn lossy_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw.get()).ok().map(|LossyText(text)| text)
}

/// A JSON string in which lone surrogates are replaced by U+FFFD.
///
/// ```
/// let text: comeback_engine::LossyText = serde_json::from_str(r#""held by \ud83d""#)?;
/// assert_eq!(text.0, "held by \u{fffd}");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossyText<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for LossyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = LossyText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<LossyText<'de>, E> {
                Ok(LossyText(without_surrogates(bytes)))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<LossyText<'de>, E> {
                Ok(LossyText(without_surrogates(bytes).into_owned().into()))
            }
        }
        // serde_json's `deserialize_bytes` accepts a lone surrogate, and encodes it like any other character. An array
        // is refused, because the visitor has no `visit_seq`.
        deserializer.deserialize_bytes(Text)
    }
}

/// Replaces the three bytes of each lone surrogate with one U+FFFD.
fn without_surrogates(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // Each byte of a surrogate is a separate invalid chunk. The first byte is 0xED.
        if chunk.invalid().first() == Some(&0xed) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text.into()
}

pub(crate) fn id(raw: &RawValue) -> Option<String> {
    string(raw).filter(|id| !id.is_empty())
}

pub(crate) fn non_empty_text(raw: &RawValue) -> Option<String> {
    lossy_text(raw).filter(|text| !text.is_empty()).map(Cow::into_owned)
}

/// Deserializes `null` as a present value; `Option<&RawValue>` alone would treat it as absent.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}
