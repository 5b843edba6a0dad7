//! Reading JSON that others wrote, part by part, so that one odd part spoils no other.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads an object. Derived structs accept arrays too, which no record is.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    match text.trim_ascii_start().chars().next() {
        Some('{') => serde_json::from_str(text).map_err(|error| error.to_string()),
        _ => Err("not a JSON object".into()),
    }
}

/// The text of a string; `None` of any other value, and of a string that is no Unicode.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

pub(crate) fn non_empty_string(raw: &RawValue) -> Option<String> {
    string(raw).filter(|text| !text.is_empty())
}

/// `Option<&RawValue>` reads `null` as absent; here it is a value like any other.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}
