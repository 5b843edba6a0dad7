//! Only times change; every other byte of a message's body, its payload above all, stays as it was.

use std::path::Path;

use comeback_engine::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::edits::Edits;
use crate::failure::BadFile;

/// A copy of an SQS event in which `moment` has become `now`. Times move by whole seconds, because an
/// envelope holds no less, and never past `now`: what was due at `moment` is due now.
///
/// # Errors
///
/// The text is not an SQS event.
pub fn shifted(path: &Path, text: &str, moment: Timestamp, now: Timestamp) -> Result<String, BadFile> {
    let by = Shift::between(moment, now);
    let event: Event<'_> = serde_json::from_str(text).map_err(|error| BadFile::new(path, error))?;
    let mut edits = Edits::new(text);
    for message in event.records {
        let Ok(message) = serde_json::from_str::<Message<'_>>(message.get()) else { continue };
        let attributes =
            message.attributes.and_then(|raw| serde_json::from_str::<Attributes<'_>>(raw.get()).ok());
        if let Some(Attributes { sent, first_receive }) = attributes {
            for time in [sent, first_receive].into_iter().flatten() {
                edits.replace(time, |time| by.quoted_millis(time));
            }
        }
        if let Some(body) = message.body {
            edits.replace(body, |body| shifted_body(body, by));
        }
        if let Some(moved) = message.message_attributes.and_then(moved_attribute) {
            edits.replace(moved, |moved| shifted_moved(moved, by));
        }
    }
    Ok(edits.apply())
}

/// A body as a JSON string, with its times shifted; `None` if there are none.
fn shifted_body(body: &RawValue, by: Shift) -> Option<String> {
    let body: String = serde_json::from_str(body.get()).ok()?;
    let record: Body<'_> = body.starts_with('{').then(|| serde_json::from_str(&body).ok())??;
    let mut edits = Edits::new(&body);
    if let Some(time) = record.timestamp {
        edits.replace(time, |time| by.quoted_rfc3339(time));
    }
    let payload = record.request_payload.filter(|payload| payload.get().starts_with('{'));
    let payload = payload.and_then(|raw| serde_json::from_str::<Payload<'_>>(raw.get()).ok());
    let metadata = payload.and_then(|payload| payload.retry_metadata);
    let metadata = metadata.and_then(|raw| serde_json::from_str::<Metadata<'_>>(raw.get()).ok());
    let first_failure = metadata.and_then(|metadata| metadata.initial_timestamp);
    for time in [first_failure, record.initial_timestamp, record.dead_lettered_at].into_iter().flatten() {
        edits.replace(time, |time| by.secs(time));
    }
    Some(serde_json::to_string(&edits.apply()).expect("BUG: a string is JSON"))
}

/// The text of the attribute that a moved message carries, as a JSON string.
fn moved_attribute(attributes: &RawValue) -> Option<&RawValue> {
    let attributes: MessageAttributes<'_> = serde_json::from_str(attributes.get()).ok()?;
    let attribute: MessageAttribute<'_> = serde_json::from_str(attributes.moved?.get()).ok()?;
    attribute.string_value
}

/// That text with its times shifted; `None` if it is not readable.
fn shifted_moved(text: &RawValue, by: Shift) -> Option<String> {
    let text: String = serde_json::from_str(text.get()).ok()?;
    let Moved { sent, first_receive, not_before } = serde_json::from_str(&text).ok()?;
    let mut edits = Edits::new(&text);
    for time in [sent, first_receive, not_before].into_iter().flatten() {
        edits.replace(time, |time| by.plain_millis(time));
    }
    Some(serde_json::to_string(&edits.apply()).expect("BUG: a string is JSON"))
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "Records")]
    records: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    attributes: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow, rename = "messageAttributes")]
    message_attributes: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Attributes<'a> {
    #[serde(borrow, rename = "SentTimestamp")]
    sent: Option<&'a RawValue>,
    #[serde(borrow, rename = "ApproximateFirstReceiveTimestamp")]
    first_receive: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageAttributes<'a> {
    #[serde(borrow, rename = "Comeback")]
    moved: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageAttribute<'a> {
    #[serde(borrow, rename = "stringValue")]
    string_value: Option<&'a RawValue>,
}

/// The attribute `Comeback`.
#[derive(Deserialize)]
struct Moved<'a> {
    #[serde(borrow)]
    sent: Option<&'a RawValue>,
    #[serde(borrow)]
    first_receive: Option<&'a RawValue>,
    #[serde(borrow)]
    not_before: Option<&'a RawValue>,
}

/// An invocation record, or a dead-letter that was redriven.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestPayload")]
    request_payload: Option<&'a RawValue>,
    #[serde(borrow)]
    initial_timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    dead_lettered_at: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow, rename = "_retry_metadata")]
    retry_metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    initial_timestamp: Option<&'a RawValue>,
}

/// Whole seconds, forward or back.
#[derive(Clone, Copy)]
struct Shift(i64);

impl Shift {
    fn between(moment: Timestamp, now: Timestamp) -> Self {
        let millis = i128::from(now.as_millis()) - i128::from(moment.as_millis());
        Self(i64::try_from(millis.div_euclid(1_000)).unwrap_or(0))
    }

    fn millis(self, time: u64) -> u64 {
        time.saturating_add_signed(self.0.saturating_mul(1_000))
    }

    fn quoted_millis(self, raw: &RawValue) -> Option<String> {
        let time: u64 = serde_json::from_str::<String>(raw.get()).ok()?.parse().ok()?;
        Some(format!("\"{}\"", self.millis(time)))
    }

    fn plain_millis(self, raw: &RawValue) -> Option<String> {
        let time: u64 = serde_json::from_str(raw.get()).ok()?;
        Some(self.millis(time).to_string())
    }

    fn quoted_rfc3339(self, raw: &RawValue) -> Option<String> {
        let time = Timestamp::from_rfc3339(&serde_json::from_str::<String>(raw.get()).ok()?)?;
        Some(format!("\"{}\"", Timestamp::from_millis(self.millis(time.as_millis()))))
    }

    fn secs(self, raw: &RawValue) -> Option<String> {
        let time: u64 = serde_json::from_str(raw.get()).ok()?;
        Some(time.saturating_add_signed(self.0).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Timestamp = Timestamp::from_millis(1_789_400_900_250);

    fn shift(text: &str, now: Timestamp) -> String {
        shifted(Path::new("event.json"), text, MOMENT, now).unwrap()
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
    fn what_has_no_times_stays_as_it_is() {
        for body in ["not json", "[1]", r#"{"timestamp": 7, "requestPayload": {"_retry_metadata": null}}"#] {
            let body = serde_json::to_string(body).unwrap();
            let event =
                format!(r#"{{"Records":[{{"body":{body},"attributes":{{"SentTimestamp":"soon"}}}}]}}"#);
            assert_eq!(shift(&event, Timestamp::from_secs(0)), event);
        }
    }

    #[test]
    fn what_a_moved_message_carries_is_shifted_too() {
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
