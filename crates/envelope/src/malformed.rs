use std::fmt;

/// Why an event that has `_retry_metadata` is no envelope. Do not guess at such an event: the retry
/// handler dead-letters it as `malformed_envelope`.
///
/// ```
/// use comeback_envelope::Malformed;
///
/// let event = serde_json::value::RawValue::from_string(r#"{"_retry_metadata":null}"#.into())?;
/// assert_eq!(comeback_envelope::open(&event).unwrap_err(), Malformed::NotAnObject);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// The JSON text found there, cut to 40 characters.
        found: String,
        /// What the key requires.
        expected: &'static str,
    },
    /// Wrap style has another key beside `_retry_metadata` and `_original_payload`: this one, cut to
    /// 40 characters.
    OtherKey(String),
    /// The payload inside is itself an envelope.
    Nested,
}

impl Malformed {
    pub(crate) fn value(key: &'static str, found: &str, expected: &'static str) -> Self {
        Self::Value { key, found: cut(found), expected }
    }

    pub(crate) fn other_key(key: &[u8]) -> Self {
        Self::OtherKey(cut(&String::from_utf8_lossy(key)))
    }
}

/// Enough to recognise a value, too little to leak a payload into a log.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(key) => write!(f, "`{key}` appears twice"),
            Self::NotAnObject => f.write_str("`_retry_metadata` is not an object"),
            Self::Missing(key) => write!(f, "`{key}` is missing"),
            Self::Value { key, found, expected } => write!(f, "`{key}` is {found}, not {expected}"),
            Self::OtherKey(key) => write!(
                f,
                "key {key:?} stands beside `_retry_metadata` and `_original_payload`, which must stand alone"
            ),
            Self::Nested => f.write_str("`_original_payload` is itself an envelope"),
        }
    }
}

impl std::error::Error for Malformed {}
