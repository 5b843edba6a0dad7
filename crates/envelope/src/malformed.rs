use std::fmt;

/// Why an event that has `_retry_metadata` is no envelope. Do not guess at such an event: the retry
/// handler dead-letters it as `malformed_envelope`.
///
/// Its text names keys of the envelope only, never what was found, so it can be logged.
///
/// ```
/// use comeback_envelope::Malformed;
///
/// let event = serde_json::value::RawValue::from_string(r#"{"_retry_metadata":null}"#.into())?;
/// assert_eq!(comeback_envelope::open(&event).unwrap_err(), Malformed::NotAnObject);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// A key appears more than once.
    Duplicate(&'static str),
    /// `_retry_metadata` is not an object.
    NotAnObject,
    /// A required key is missing.
    Missing(&'static str),
    /// A value is not what its key requires.
    Value {
        /// The key.
        key: &'static str,
        /// What the key requires.
        expected: &'static str,
    },
    /// Wrap style has another key beside `_retry_metadata` and `_original_payload`.
    OtherKey,
    /// The payload inside is itself an envelope.
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
