use serde::{Deserialize, Serialize};

use crate::members::{Member, is_object, members};
use crate::{Malformed, Style};

pub(crate) const METADATA: &str = "_retry_metadata";
pub(crate) const ORIGINAL_PAYLOAD: &str = "_original_payload";

/// The metadata of a retried event.
///
/// ```
/// use comeback_envelope::Metadata;
///
/// let metadata =
///     Metadata { attempt: 1, initial_timestamp: 1643667670, origin_request_id: Some("a1".to_owned()) };
/// assert_eq!(
///     serde_json::to_string(&metadata)?,
///     r#"{"attempt":1,"initial_timestamp":1643667670,"origin_request_id":"a1"}"#
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// The number of the retry that carries the event: 1 on the first re-invocation. A failure of
    /// attempt *k* is followed by retry *k* + 1. A forged envelope may hold any number from 1 to
    /// `u64::MAX`: do not let an addition overflow.
    pub attempt: u64,
    /// When the event first failed, in epoch seconds. It may be any `u64`: check it before you trust it.
    pub initial_timestamp: u64,
    /// The request id of the first invocation, the same on every retry; never empty. `None` only in
    /// envelopes written by a handler other than Comeback's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_request_id: Option<String>,
}

impl Metadata {
    /// Reads `_retry_metadata`. Unknown keys are ignored.
    pub(crate) fn read(raw: &str) -> Result<(Self, Style), Malformed> {
        if !is_object(raw) {
            return Err(Malformed::NotAnObject);
        }
        let mut fields = Fields::default();
        let mut twice = None;
        for Member { key, value, .. } in members(raw) {
            let (name, field) = match key.as_ref() {
                b"attempt" => ("attempt", &mut fields.attempt),
                b"initial_timestamp" => ("initial_timestamp", &mut fields.initial_timestamp),
                b"origin_request_id" => ("origin_request_id", &mut fields.origin_request_id),
                b"style" => ("style", &mut fields.style),
                _ => continue,
            };
            if field.replace(value).is_some() {
                twice = Some(name);
            }
        }
        match twice {
            Some(key) => Err(Malformed::Duplicate(key)),
            None => fields.check(),
        }
    }
}

#[derive(Default)]
struct Fields<'a> {
    attempt: Option<&'a str>,
    initial_timestamp: Option<&'a str>,
    origin_request_id: Option<&'a str>,
    style: Option<&'a str>,
}

impl Fields<'_> {
    fn check(self) -> Result<(Metadata, Style), Malformed> {
        let attempt = required("attempt", self.attempt, "an integer of at least 1", |n: &u64| *n >= 1)?;
        let initial_timestamp =
            required("initial_timestamp", self.initial_timestamp, "an integer of at least 0", |_: &u64| {
                true
            })?;
        let origin_request_id = optional(
            "origin_request_id",
            self.origin_request_id,
            "a string that is not empty",
            |id: &String| !id.is_empty(),
        )?;
        let style = optional("style", self.style, "\"inline\" or \"wrap\"", |_: &Style| true)?;
        let metadata = Metadata { attempt, initial_timestamp, origin_request_id };
        Ok((metadata, style.unwrap_or(Style::Wrap)))
    }
}

fn required<'a, T: Deserialize<'a>>(
    key: &'static str,
    raw: Option<&'a str>,
    expected: &'static str,
    is_valid: fn(&T) -> bool,
) -> Result<T, Malformed> {
    let raw = raw.ok_or(Malformed::Missing(key))?;
    serde_json::from_str(raw).ok().filter(is_valid).ok_or(Malformed::Value { key, expected })
}

/// Null counts as absent: a target in another language may write it so.
fn optional<'a, T: Deserialize<'a>>(
    key: &'static str,
    raw: Option<&'a str>,
    expected: &'static str,
    is_valid: fn(&T) -> bool,
) -> Result<Option<T>, Malformed> {
    raw.filter(|raw| *raw != "null").map(|raw| required(key, Some(raw), expected, is_valid)).transpose()
}
