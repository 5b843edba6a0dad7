use std::fmt;

/// Why an event was given up, as its dead-letter carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// For filtering and counting.
    pub code: ReasonCode,
    /// For a reader: what was found, and against which limit. Never holds the payload.
    pub detail: String,
}

impl Reason {
    pub(crate) fn new(code: ReasonCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// The reasons of a dead-letter: a fixed set of names, filtered on by users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonCode {
    /// `MAX_RETRIES` re-invocations were made.
    MaxRetries,
    /// `MAX_AGE` has passed since the first failure, or no backoff fits before it.
    MaxAge,
    /// The error matches `NON_RETRYABLE_ERRORS`.
    NonRetryableError,
    /// The target does not exist.
    TargetNotFound,
    /// Lambda will never accept this event for this target.
    TargetRefused,
    /// The target is not on `TARGET_FUNCTIONS`.
    TargetNotAllowed,
    /// The event, or the record of its next failure, is over the size limit.
    PayloadTooLarge,
    /// The message's body is no invocation record.
    MalformedRecord,
    /// The payload has a `_retry_metadata` that cannot be read.
    MalformedEnvelope,
}

impl ReasonCode {
    /// Every reason, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::MaxRetries,
        Self::MaxAge,
        Self::NonRetryableError,
        Self::TargetNotFound,
        Self::TargetRefused,
        Self::TargetNotAllowed,
        Self::PayloadTooLarge,
        Self::MalformedRecord,
        Self::MalformedEnvelope,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxRetries => "max_retries",
            Self::MaxAge => "max_age",
            Self::NonRetryableError => "non_retryable_error",
            Self::TargetNotFound => "target_not_found",
            Self::TargetRefused => "target_refused",
            Self::TargetNotAllowed => "target_not_allowed",
            Self::PayloadTooLarge => "payload_too_large",
            Self::MalformedRecord => "malformed_record",
            Self::MalformedEnvelope => "malformed_envelope",
        }
    }

    /// The reason of this name.
    ///
    /// ```
    /// use comeback_engine::ReasonCode;
    ///
    /// assert_eq!(ReasonCode::named("max_age"), Some(ReasonCode::MaxAge));
    /// assert_eq!(ReasonCode::named("MAX_AGE"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}
