//! `comeback replay --shift-to-now FILE`: copies a recorded event with its times shifted.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use comeback_engine::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Returns a copy of an SQS event with all times shifted by the same number of whole seconds. `moment` becomes `now`,
/// or a time less than a second earlier. Every other byte stays the same.
///
/// # Panics
///
/// Panics if the text is not an SQS event.
pub fn shifted(event: &str, moment: Timestamp, now: Timestamp) -> String {
    #[derive(Deserialize)]
    struct ParsedEvent<'a> {
        #[serde(borrow, rename = "Records")]
        records: Vec<&'a RawValue>,
    }
    let by = Shift::between(moment, now);
    let parsed: ParsedEvent<'_> = serde_json::from_str(event).expect("BUG: the event cannot be read again");
    by.applied(event, parsed.records, &MESSAGE)
}

/// The path to a JSON member that holds a time, and the function that shifts it.
type Time = (&'static [&'static str], fn(Shift, &RawValue) -> Option<String>);

const MESSAGE: [Time; 4] = [
    (&["attributes", "SentTimestamp"], Shift::quoted_millis),
    (&["attributes", "ApproximateFirstReceiveTimestamp"], Shift::quoted_millis),
    (&["body"], |by, body| by.text(body, &BODY)),
    (&["messageAttributes", "Comeback", "stringValue"], |by, moved| by.text(moved, &MOVED)),
];

/// The members that hold a time in an invocation record or a redriven dead-letter.
const BODY: [Time; 4] = [
    (&["timestamp"], Shift::quoted_rfc3339),
    (&["requestPayload", "_retry_metadata", "initial_timestamp"], Shift::secs),
    (&["initial_timestamp"], Shift::secs),
    (&["dead_lettered_at"], Shift::secs),
];

/// The members of a moved message's `Comeback` attribute that hold a time.
const MOVED: [Time; 3] =
    [(&["sent"], Shift::millis), (&["first_receive"], Shift::millis), (&["not_before"], Shift::millis)];

/// The number of seconds to add to the times in a recorded event.
#[derive(Clone, Copy)]
struct Shift(i64);

impl Shift {
    fn between(moment: Timestamp, now: Timestamp) -> Self {
        let millis = i128::from(now.as_millis()) - i128::from(moment.as_millis());
        Self(i64::try_from(millis.div_euclid(1_000)).unwrap_or(0))
    }

    /// Returns a copy of `text` with the times in these objects shifted. The objects must borrow from `text`.
    fn applied<'a>(
        self,
        text: &'a str,
        objects: impl IntoIterator<Item = &'a RawValue>,
        times: &[Time],
    ) -> String {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for object in objects {
            for (path, shift) in times {
                let Some(value) = member(object, path) else { continue };
                // The value borrows from `text`, so its address gives its position in `text`.
                let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
                edits.extend(shift(self, value).map(|new| (start..start + value.get().len(), new)));
            }
        }
        // Edits are applied from the end, so that an edit does not change the position of the next one.
        edits.sort_by_key(|(range, _)| Reverse(range.start));
        let mut shifted = text.to_owned();
        for (range, new) in edits {
            shifted.replace_range(range, &new);
        }
        shifted
    }

    /// Shifts the times in a JSON object that is encoded as a JSON string. Returns `None` if the string does not
    /// contain an object.
    fn text(self, text: &RawValue, times: &[Time]) -> Option<String> {
        let text: String = serde_json::from_str(text.get()).ok()?;
        let object: &RawValue = text.starts_with('{').then(|| serde_json::from_str(&text).ok())??;
        let shifted = self.applied(&text, [object], times);
        Some(serde_json::to_string(&shifted).expect("BUG: a string is JSON"))
    }

    fn number(self, text: &str, units_a_second: i64) -> Option<String> {
        let time: u64 = text.parse().ok()?;
        Some(time.saturating_add_signed(self.0.saturating_mul(units_a_second)).to_string())
    }

    fn secs(self, raw: &RawValue) -> Option<String> {
        self.number(raw.get(), 1)
    }

    fn millis(self, raw: &RawValue) -> Option<String> {
        self.number(raw.get(), 1_000)
    }

    fn quoted_millis(self, raw: &RawValue) -> Option<String> {
        let millis = self.number(&serde_json::from_str::<String>(raw.get()).ok()?, 1_000)?;
        Some(format!("\"{millis}\""))
    }

    fn quoted_rfc3339(self, raw: &RawValue) -> Option<String> {
        let time = Timestamp::from_rfc3339(&serde_json::from_str::<String>(raw.get()).ok()?)?;
        let millis = time.as_millis().saturating_add_signed(self.0.saturating_mul(1_000));
        Some(format!("\"{}\"", Timestamp::from_millis(millis)))
    }
}

fn member<'a>(object: &'a RawValue, path: &[&str]) -> Option<&'a RawValue> {
    path.iter().try_fold(object, |object, name| {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
        members.get(*name).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Timestamp = Timestamp::from_millis(1_789_400_900_250);

    fn shift(text: &str, now: Timestamp) -> String {
        shifted(text, MOMENT, now)
    }

    #[test]
    fn every_time_moves_by_the_same_whole_seconds() {
        let record = r#"{ "timestamp":"2026-09-14T15:46:54.145Z", "requestPayload": {"_retry_metadata":{"attempt":2, "initial_timestamp": 1789400000}, "_original_payload": {"n": 1.0, "é": "\u00e9" }} }"#;
        let event = |body: &str, sent: u64, first: u64| {
            let body = serde_json::to_string(body).unwrap();
            format!(
                "{{\"Records\": [ {{\"body\": {body},\n \"attributes\": {{\"SentTimestamp\": \"{sent}\", \"ApproximateFirstReceiveTimestamp\" : \"{first}\"}}}}]}}\n"
            )
        };
        let before = event(record, 1_789_400_814_145, 1_789_400_814_200);
        let later = Timestamp::from_millis(MOMENT.as_millis() + 86_400_000 + 999);
        let moved = record.replace("2026-09-14", "2026-09-15").replace("1789400000", "1789486400");
        assert_eq!(shift(&before, later), event(&moved, 1_789_487_214_145, 1_789_487_214_200));
        let earlier = Timestamp::from_millis(MOMENT.as_millis() - 1);
        let moved = record.replace("54.145", "53.145").replace("1789400000", "1789399999");
        assert_eq!(shift(&before, earlier), event(&moved, 1_789_400_813_145, 1_789_400_813_200));
    }

    #[test]
    fn a_file_without_times_is_unchanged() {
        for body in ["not json", "[1]", r#"{"timestamp": 7, "requestPayload": {"_retry_metadata": null}}"#] {
            let body = serde_json::to_string(body).unwrap();
            let event =
                format!(r#"{{"Records":[{{"body":{body},"attributes":{{"SentTimestamp":"soon"}}}}]}}"#);
            assert_eq!(shift(&event, Timestamp::from_secs(0)), event);
        }
    }

    #[test]
    fn a_moved_messages_attribute_is_shifted_too() {
        let event = |carried: &str| {
            let carried = serde_json::to_string(carried).unwrap();
            format!(r#"{{"Records":[{{"messageAttributes":{{"Comeback":{{"stringValue":{carried}}}}}}}]}}"#)
        };
        let now = Timestamp::from_millis(MOMENT.as_millis() + 5_000);
        let carried = |last| {
            format!(
                r#"{{"message_id":"1789400000001", "sent": 1789400000001, "first_receive":1789400000002,"receives":7{last}}}"#
            )
        };
        let later = |last| {
            carried(last).replace(": 1789400000", ": 1789400005").replace(":1789400000", ":1789400005")
        };
        assert_eq!(shift(&event(&carried("")), now), event(&later("")));
        let held = r#","not_before":1789400000003"#;
        assert_eq!(shift(&event(&carried(held)), now), event(&later(held)));
        for unreadable in ["", r#"{"sent":17894"#, r#"{"sent":"1789400000001"}"#] {
            assert_eq!(shift(&event(unreadable), now), event(unreadable));
        }
    }

    #[test]
    fn a_dead_letter_is_shifted_too() {
        let event =
            r#"{"Records":[{"body":"{\"initial_timestamp\":1789400000,\"dead_lettered_at\":1789400001}"}]}"#;
        let now = Timestamp::from_millis(MOMENT.as_millis() + 5_000);
        assert_eq!(
            shift(event, now),
            event.replace("1789400000", "1789400005").replace("1789400001", "1789400006")
        );
    }
}
