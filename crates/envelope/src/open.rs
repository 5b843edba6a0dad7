use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::members::{Member, members};
use crate::metadata::{METADATA, ORIGINAL_PAYLOAD};
use crate::{Malformed, Metadata, Style};

/// An event out of its envelope: what [`open`] returns.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// What the function was first invoked with, byte for byte: any JSON value, and never itself an
    /// envelope.
    pub payload: Cow<'a, RawValue>,
    /// `None` on the first invocation.
    pub metadata: Option<Metadata>,
}

impl Event<'_> {
    /// The number of the retry that carries the event; 0 on the first invocation.
    pub fn attempt(&self) -> u64 {
        self.metadata.as_ref().map_or(0, |metadata| metadata.attempt)
    }

    /// A key that is the same on the first invocation and on each of its retries: the first
    /// invocation's request id. Pass the request id of the current invocation, which *is* that id on the
    /// first invocation.
    ///
    /// For an envelope without an id, the key is the current request id. It stays the key from then on,
    /// since Comeback's handler writes it into the next retry's envelope.
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

/// Takes an event out of its envelope, whichever style it has, or none.
///
/// Only an object with a top-level `_retry_metadata` is an envelope. Anything else is itself the payload,
/// `null` included.
///
/// # Errors
///
/// [`Malformed`] if `_retry_metadata` is there but the envelope is not valid. A target should fail with
/// it: the retry handler then dead-letters the event with the same words.
///
/// # Example
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
    let top = TopLevel::of(event.get());
    let Some((raw, span)) = &top.metadata else {
        return Ok(Event { payload: Cow::Borrowed(event), metadata: None });
    };
    if top.metadata_twice {
        return Err(Malformed::Duplicate(METADATA));
    }
    let (metadata, style) = Metadata::read(raw)?;
    let payload = match style {
        Style::Inline => Cow::Owned(without(event.get(), span)),
        Style::Wrap => Cow::Borrowed(top.wrapped_payload()?),
    };
    Ok(Event { payload, metadata: Some(metadata) })
}

/// The top-level members of an event that matter here.
#[derive(Default)]
struct TopLevel<'a> {
    metadata: Option<(&'a str, Range<usize>)>,
    metadata_twice: bool,
    original_payload: Option<&'a str>,
    original_payload_twice: bool,
    has_other_key: bool,
}

impl<'a> TopLevel<'a> {
    fn of(event: &'a str) -> Self {
        let mut top = Self::default();
        for Member { key, span, value } in members(event) {
            if key.as_ref() == METADATA.as_bytes() {
                top.metadata_twice |= top.metadata.replace((value, span)).is_some();
            } else if key.as_ref() == ORIGINAL_PAYLOAD.as_bytes() {
                top.original_payload_twice |= top.original_payload.replace(value).is_some();
            } else {
                top.has_other_key = true;
            }
        }
        top
    }

    /// The payload in wrap style. Not for inline style, in which any other key is allowed.
    fn wrapped_payload(&self) -> Result<&'a RawValue, Malformed> {
        if self.original_payload_twice {
            return Err(Malformed::Duplicate(ORIGINAL_PAYLOAD));
        }
        let payload = self.original_payload.ok_or(Malformed::Missing(ORIGINAL_PAYLOAD))?;
        if self.has_other_key {
            return Err(Malformed::OtherKey);
        }
        if members(payload).any(|member| member.key.as_ref() == METADATA.as_bytes()) {
            return Err(Malformed::Nested);
        }
        Ok(serde_json::from_str(payload).expect("BUG: a member of an object is a value"))
    }
}

/// The object without the member at `span`, and without one comma beside it and the white space between
/// the two. All else stays.
fn without(object: &str, span: &Range<usize>) -> Box<RawValue> {
    let (before, after) = (&object[..span.start], &object[span.end..]);
    let (before, after) = match after.trim_start().strip_prefix(',') {
        Some(after) => (before, after),
        // It is the last member: the comma to remove, if there is one, is before it.
        None => (before.trim_end().strip_suffix(',').unwrap_or(before), after),
    };
    RawValue::from_string([before, after].concat())
        .expect("BUG: an object without one member and one comma is an object")
}
