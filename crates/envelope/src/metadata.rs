//! The metadata of an envelope, and the envelope's style.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::members::{is_object, members};

pub(crate) const METADATA: &str = "_retry_metadata";
pub(crate) const ORIGINAL_PAYLOAD: &str = "_original_payload";

/// The metadata in the envelope of a retried event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// The number of the retry: 1 on the first re-invocation, but up to `u64::MAX` in a forged envelope.
    pub attempt: u64,
    /// The time of the event's first failure, in epoch seconds. A forged envelope may contain any `u64`.
    pub initial_timestamp: u64,
    /// The request id of the first invocation, never empty; `None` if the envelope has no id. Comeback's handler always
    /// writes an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_request_id: Option<String>,
}

impl Metadata {
    /// Parses `_retry_metadata` into the metadata and the envelope's style, ignoring unknown keys.
    pub(crate) fn read(raw: &str) -> Result<(Self, Style), Malformed> {
        if !is_object(raw) {
            return Err(Malformed::NotAnObject);
        }
        let (mut values, mut twice) = ([None; KEYS.len()], None);
        for member in members(raw) {
            let place = KEYS.iter().position(|key| member.is(key));
            if let Some(place) = place
                && values[place].replace(member.value).is_some()
            {
                twice = Some(KEYS[place]);
            }
        }
        if let Some(key) = twice {
            return Err(Malformed::Duplicate(key));
        }
        let [attempt, since, id, style] = values;
        let is_id = |id: &String| !id.is_empty();
        let metadata = Self {
            attempt: required(attempt, "attempt", "an integer of at least 1", |n| *n >= 1)?,
            initial_timestamp: required(since, "initial_timestamp", "an integer of at least 0", |_| true)?,
            origin_request_id: optional(id, "origin_request_id", "a string that is not empty", is_id)?,
        };
        let style = optional(style, "style", "\"inline\" or \"wrap\"", |_| true)?;
        Ok((metadata, style.unwrap_or(Style::Wrap)))
    }
}

/// The known keys, in the order in which [`Metadata::read`] takes their values.
const KEYS: [&str; 4] = ["attempt", "initial_timestamp", "origin_request_id", "style"];

fn required<'a, T: Deserialize<'a>>(
    value: Option<&'a str>,
    key: &'static str,
    expected: &'static str,
    is_valid: impl Fn(&T) -> bool,
) -> Result<T, Malformed> {
    let value = value.ok_or(Malformed::Missing(key))?;
    serde_json::from_str(value).ok().filter(is_valid).ok_or(Malformed::Value { key, expected })
}

/// Parses the value of an optional key. Returns `None` if the key is absent or its value is `null`, which programs in
/// other languages may write for a missing value.
fn optional<'a, T: Deserialize<'a>>(
    value: Option<&'a str>,
    key: &'static str,
    expected: &'static str,
    is_valid: impl Fn(&T) -> bool,
) -> Result<Option<T>, Malformed> {
    match value {
        None | Some("null") => Ok(None),
        Some(_) => required(value, key, expected, is_valid).map(Some),
    }
}

/// The style of an envelope: where it holds its metadata.
///
/// ```
/// use comeback_envelope::Style;
///
/// assert_eq!("inline".parse(), Ok(Style::Inline));
/// assert_eq!(Style::default().name(), "wrap");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub enum Style {
    /// The envelope is `{"_retry_metadata": …, "_original_payload": …}`, around any payload. The target must unwrap it.
    #[default]
    Wrap,
    /// The envelope is the payload with the additional key `_retry_metadata`, for targets that ignore unknown keys. A
    /// payload that is not an object is wrapped instead.
    Inline,
}

impl Style {
    /// Both styles of envelope, the default first.
    pub const ALL: [Self; 2] = [Self::Wrap, Self::Inline];

    /// The name of the style: `wrap` or `inline`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wrap => "wrap",
            Self::Inline => "inline",
        }
    }
}

/// Error for a string that is not the name of a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStyle;

impl FromStr for Style {
    type Err = UnknownStyle;

    fn from_str(name: &str) -> Result<Self, UnknownStyle> {
        Self::ALL.into_iter().find(|style| style.name() == name).ok_or(UnknownStyle)
    }
}

/// Lets serde read a style only from a string. Without this, serde would also accept `{"inline":null}`.
impl TryFrom<String> for Style {
    type Error = UnknownStyle;

    fn try_from(name: String) -> Result<Self, UnknownStyle> {
        name.parse()
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for UnknownStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be wrap or inline")
    }
}

impl std::error::Error for UnknownStyle {}

/// The reason why an event with a `_retry_metadata` key is not a valid envelope.
///
/// The error can be logged: its message names keys of the envelope, but never their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// This key appears more than once.
    Duplicate(&'static str),
    /// The value of `_retry_metadata` is not an object.
    NotAnObject,
    /// This required key is missing.
    Missing(&'static str),
    /// A key has the wrong kind of value.
    Value {
        /// The key whose value is wrong.
        key: &'static str,
        /// The kind of value that the key requires.
        expected: &'static str,
    },
    /// In wrap style, the event has another key besides `_retry_metadata` and `_original_payload`.
    OtherKey,
    /// The payload in the envelope is itself an envelope.
    Nested,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(key) => write!(f, "`{key}` appears twice"),
            Self::NotAnObject => f.write_str("`_retry_metadata` is not an object"),
            Self::Missing(key) => write!(f, "`{key}` is missing"),
            Self::Value { key, expected } => write!(f, "`{key}` is not {expected}"),
            Self::OtherKey => f.write_str(
                "another key stands beside `_retry_metadata` and `_original_payload`, which must stand alone",
            ),
            Self::Nested => f.write_str("`_original_payload` is itself an envelope"),
        }
    }
}

impl std::error::Error for Malformed {}
