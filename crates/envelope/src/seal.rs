use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::members::is_object;
use crate::metadata::{METADATA, ORIGINAL_PAYLOAD};
use crate::{Metadata, Style};

/// An original payload and the metadata of its next retry.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// Travels as `_retry_metadata`. Its attempt must be at least 1 and its id not empty, or nobody can open
    /// what [`seal`](Self::seal) writes.
    pub metadata: Metadata,
    /// The payload of the first invocation. It must not be an envelope itself, and is none if it comes from
    /// [`open`](crate::open).
    pub original_payload: Cow<'a, RawValue>,
}

impl Envelope<'_> {
    /// The JSON text to invoke the target with. It holds the payload's bytes unchanged.
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

    /// The number of bytes that [`seal`](Self::seal) would write.
    ///
    /// ```
    /// # use comeback_envelope::{Envelope, Metadata, Style};
    /// # let metadata = Metadata { attempt: 1, initial_timestamp: 1643667670, origin_request_id: None };
    /// # let payload = serde_json::value::RawValue::from_string("[7]".into())?;
    /// # let envelope = Envelope { metadata, original_payload: std::borrow::Cow::Owned(payload) };
    /// assert_eq!(envelope.sealed_len(Style::Wrap), envelope.seal(Style::Wrap).len());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn sealed_len(&self, style: Style) -> usize {
        self.parts(&self.metadata_text(), style).iter().map(|part| part.len()).sum()
    }

    fn metadata_text(&self) -> String {
        let mut metadata = serde_json::to_string(&self.metadata).expect("BUG: metadata is plain JSON");
        if !metadata.is_ascii() {
            // An id may hold these two, decoded from an escape. SQS would refuse the next failure's record if
            // they were written raw.
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
    fn styles_are_read_by_the_name_they_are_written_with() {
        for style in Style::ALL {
            assert_eq!(style.to_string().parse(), Ok(style));
            let json = serde_json::to_string(&style).unwrap();
            assert_eq!(json, format!("{:?}", style.name()));
            assert_eq!(serde_json::from_str::<Style>(&json).unwrap(), style);
        }
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["", "Wrap", "INLINE", " wrap", "inlined"] {
            assert_eq!(name.parse::<Style>().unwrap_err().to_string(), "must be wrap or inline", "{name:?}");
        }
    }

    /// Lambda would write them raw into the record of the next failure, and SQS would refuse it.
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
