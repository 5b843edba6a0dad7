//! What the simulated events carry. Any JSON would do; this says which event it belongs to, so
//! that a payload can be recognised, and has what parsers like to change: `1.0`-like numbers,
//! escapes and inner white space.

use std::fmt::Write;

const START: &str = r#"{"order":"#;

/// Writes the payload of an event.
pub(crate) fn write(event: usize, text: &mut String) {
    text.clear();
    write!(
        text,
        r#"{START}{event},"customer":"caf\u00e9 {}","total":{}.50, "items":[{{"sku":"A-{}","quantity":1.0}}]}}"#,
        event % 97,
        event % 1_000,
        event % 13
    )
    .expect("BUG: writing to a String");
}

/// The event a payload is of; `None` if it is none of ours.
pub(crate) fn event_of(payload: &str) -> Option<usize> {
    let rest = payload.strip_prefix(START)?;
    rest[..rest.find(',')?].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_and_tells_its_event() {
        let mut text = String::from("of another");
        write(1_234, &mut text);
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        assert_eq!(event_of(&text), Some(1_234));
        assert_eq!(event_of("null"), None);
    }
}
