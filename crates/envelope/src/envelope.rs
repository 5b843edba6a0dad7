//! Reading and writing envelopes in both styles.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::members::{Member, is_object, members};
use crate::metadata::{METADATA, Malformed, Metadata, ORIGINAL_PAYLOAD, Style};

/// An opened event: its payload, and the metadata of its envelope.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// The payload of the event's first invocation, byte for byte.
    pub payload: Cow<'a, RawValue>,
    /// The envelope's metadata; `None` on the first invocation, which has no envelope.
    pub metadata: Option<Metadata>,
}

impl Event<'_> {
    /// Returns the number of this retry; 0 on the first invocation.
    pub fn attempt(&self) -> u64 {
        self.metadata.as_ref().map_or(0, |metadata| metadata.attempt)
    }

    /// Returns a key that stays the same on every retry: the request id of the first invocation.
    ///
    /// Pass the request id of the current invocation. It is returned if there is no envelope, or if the envelope
    /// contains no id.
    ///
    /// ```
    /// let event = serde_json::value::RawValue::from_string(r#"{"order":7}"#.into())?;
    /// let event = comeback_envelope::open(&event)?;
    /// assert_eq!(event.idempotency_key("this invocation's request id"), "this invocation's request id");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn idempotency_key<'k>(&'k self, request_id: &'k str) -> &'k str {
        self.metadata
            .as_ref()
            .and_then(|metadata| metadata.origin_request_id.as_deref())
            .unwrap_or(request_id)
    }
}

/// Takes an event out of its envelope, in either [`Style`].
///
/// Only an object with a top-level `_retry_metadata` is an envelope. Any other event is itself the payload.
///
/// # Errors
///
/// Fails with [`Malformed`] if `_retry_metadata` is present but the envelope is not valid. The target should then
/// fail too, so that the retry handler dead-letters the event.
///
/// ```
/// let event = serde_json::value::RawValue::from_string(
///     r#"{"_retry_metadata":{"attempt":0,"initial_timestamp":1643667670},"_original_payload":null}"#.into(),
/// )?;
/// let malformed = comeback_envelope::open(&event).unwrap_err();
/// assert_eq!(malformed.to_string(), "`attempt` is not an integer of at least 1");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn open(event: &RawValue) -> Result<Event<'_>, Malformed> {
    let (mut metadata, mut payloads, mut has_other_key) = (Vec::new(), Vec::new(), false);
    for member in members(event.get()) {
        if member.is(METADATA) {
            metadata.push(member);
        } else if member.is(ORIGINAL_PAYLOAD) {
            payloads.push(member.value);
        } else {
            has_other_key = true;
        }
    }
    let Member { span, value, .. } = match &metadata[..] {
        [] => return Ok(Event { payload: Cow::Borrowed(event), metadata: None }),
        [one] => one,
        _ => return Err(Malformed::Duplicate(METADATA)),
    };
    let (metadata, style) = Metadata::read(value)?;
    let payload = match style {
        Style::Inline => Cow::Owned(without(event.get(), span)),
        Style::Wrap => Cow::Borrowed(wrapped(&payloads, has_other_key)?),
    };
    Ok(Event { payload, metadata: Some(metadata) })
}

fn wrapped<'a>(payloads: &[&'a str], has_other_key: bool) -> Result<&'a RawValue, Malformed> {
    match payloads {
        [] => Err(Malformed::Missing(ORIGINAL_PAYLOAD)),
        [_, _, ..] => Err(Malformed::Duplicate(ORIGINAL_PAYLOAD)),
        _ if has_other_key => Err(Malformed::OtherKey),
        [payload] if members(payload).any(|member| member.is(METADATA)) => Err(Malformed::Nested),
        [payload] => Ok(serde_json::from_str(payload).expect("BUG: a member of an object is a value")),
    }
}

/// Removes the member at `span` from an object, together with one adjacent comma and the white space between the two.
fn without(object: &str, span: &Range<usize>) -> Box<RawValue> {
    let (before, after) = (&object[..span.start], &object[span.end..]);
    let (before, after) = match after.trim_start().strip_prefix(',') {
        Some(after) => (before, after),
        // The member is the last one, so any comma to remove is before it.
        None => (before.trim_end().strip_suffix(',').unwrap_or(before), after),
    };
    RawValue::from_string([before, after].concat())
        .expect("BUG: an object without one member and one comma is an object")
}

/// An envelope to write around a payload.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// The metadata, written as `_retry_metadata`. [`open`] refuses an attempt of 0 and an empty id.
    pub metadata: Metadata,
    /// The payload of the event's first invocation. It must not itself be an envelope.
    pub original_payload: Cow<'a, RawValue>,
}

impl Envelope<'_> {
    /// Writes the envelope as the JSON event for the next invocation, with the payload's bytes unchanged.
    ///
    /// ```
    /// use comeback_envelope::{Envelope, Metadata, Style};
    ///
    /// let metadata = Metadata { attempt: 1, initial_timestamp: 1643667670, origin_request_id: Some("a1".into()) };
    /// let payload = serde_json::value::RawValue::from_string(r#"{ "n": 1E400 }"#.into())?;
    /// let envelope = Envelope { metadata, original_payload: std::borrow::Cow::Owned(payload) };
    /// assert_eq!(
    ///     envelope.seal(Style::Wrap),
    ///     r#"{"_retry_metadata":{"attempt":1,"initial_timestamp":1643667670,"origin_request_id":"a1"},"_original_payload":{ "n": 1E400 }}"#
    /// );
    /// assert_eq!(
    ///     envelope.seal(Style::Inline),
    ///     r#"{"_retry_metadata":{"attempt":1,"initial_timestamp":1643667670,"origin_request_id":"a1","style":"inline"}, "n": 1E400 }"#
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn seal(&self, style: Style) -> String {
        self.parts(&self.metadata_text(), style).concat()
    }

    /// Returns the number of bytes that [`seal`](Self::seal) writes.
    pub fn sealed_len(&self, style: Style) -> usize {
        self.parts(&self.metadata_text(), style).iter().map(|part| part.len()).sum()
    }

    fn metadata_text(&self) -> String {
        let mut metadata = serde_json::to_string(&self.metadata).expect("BUG: metadata is plain JSON");
        if !metadata.is_ascii() {
            // An id may contain these two characters, decoded from an escape. If they were written raw, Lambda would
            // copy them into the record of the next failure, and SQS would refuse the record.
            metadata = metadata.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff");
        }
        metadata
    }

    fn parts<'p>(&'p self, metadata: &'p str, style: Style) -> Vec<&'p str> {
        let payload = self.original_payload.get();
        if style == Style::Wrap || !is_object(payload) {
            return vec!["{\"", METADATA, "\":", metadata, ",\"", ORIGINAL_PAYLOAD, "\":", payload, "}"];
        }
        let metadata = &metadata[..metadata.len() - 1];
        let rest = &payload[1..];
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        vec!["{\"", METADATA, "\":", metadata, ",\"style\":\"inline\"}", comma, rest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_read_by_name_only() {
        for style in Style::ALL {
            let json = serde_json::to_string(&style).unwrap();
            assert_eq!(json, format!("{:?}", style.name()));
            assert_eq!(serde_json::from_str::<Style>(&json).unwrap(), style);
        }
        for name in ["", "Wrap", "INLINE", " wrap", "inlined"] {
            assert_eq!(name.parse::<Style>().unwrap_err().to_string(), "must be wrap or inline", "{name:?}");
        }
    }

    #[test]
    fn characters_that_sqs_refuses_stay_escaped() {
        let id = "a\u{fffe}\u{ffff}b";
        let metadata = Metadata { attempt: 1, initial_timestamp: 0, origin_request_id: Some(id.to_owned()) };
        let original_payload = Cow::Owned(RawValue::from_string("{}".into()).unwrap());
        let envelope = Envelope { metadata, original_payload };
        for style in Style::ALL {
            let sealed = envelope.seal(style);
            assert!(sealed.contains(r"a\ufffe\uffffb"), "{sealed}");
            assert_eq!(envelope.sealed_len(style), sealed.len());
            let event: Box<RawValue> = serde_json::from_str(&sealed).unwrap();
            assert_eq!(crate::open(&event).unwrap().idempotency_key("other"), id);
        }
    }
}
