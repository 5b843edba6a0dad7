//! The events of a run, with payloads that JSON parsers tend to change.

use std::fmt::{self, Write};

/// The position of an event in a run's order of arrival, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventNumber(pub usize);

impl fmt::Display for EventNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Start of the JSON member that pads a payload to the requested size.
const NOTE: &str = r#","note":""#;
const END: &str = "\"}";

impl EventNumber {
    /// Writes the event's payload into `text`, padded to at least `bytes` bytes.
    pub(crate) fn write_payload(self, bytes: usize, text: &mut String) {
        let Self(event) = self;
        text.clear();
        write!(
            text,
            r#"{{"order":{event},"customer":"caf\u00e9 {}","total":{}.50, "items":[{{"sku":"A-{}","quantity":1.0}}]}}"#,
            event % 97,
            event % 1_000,
            event % 13
        )
        .expect("BUG: writing to a String");
        if text.len() < bytes {
            text.pop();
            text.push_str(NOTE);
            text.extend(std::iter::repeat_n('x', bytes.saturating_sub(text.len() + END.len())));
            text.push_str(END);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_and_has_its_size() {
        let mut text = String::from("of another");
        for bytes in [0, 150, 5_000] {
            EventNumber(1_234).write_payload(bytes, &mut text);
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
            assert!(bytes == 0 || text.len() == bytes, "{} of {bytes}", text.len());
        }
    }
}
