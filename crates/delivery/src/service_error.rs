use std::fmt;

/// What a service said of an entry, or of a whole call, that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// What kind it is, and so whether it is retried.
    pub kind: ErrorKind,
    /// The service's code, such as `AccessDeniedException`; empty where there was none.
    pub code: String,
    /// The service's message, or the chain of causes where it never answered. **It may quote what was
    /// sent**: log it only if you know that this service does not.
    pub message: String,
}

/// The kind of a [`ServiceError`]: it says whether a retry may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The service asked for less: retried.
    Throttled,
    /// A 5xx, a timeout, a lost connection, an entry without an answer: retried. The entry may have
    /// arrived nevertheless.
    Transient,
    /// An error that is not known: retried.
    Unknown,
    /// The request or the entry is wrong and stays so. A call of several entries is sent again in halves.
    Refused,
    /// Permissions, credentials or keys are wrong until someone corrects them.
    Denied,
    /// The queue, table, stream, bus or function does not exist.
    Missing,
    /// Over a limit of the service. A call of several entries is sent again in halves.
    TooLarge,
    /// The operation panicked: a bug. The entry may have arrived.
    Panicked,
}

impl ErrorKind {
    /// Whether another call may help. Errors of the sender are not retried.
    pub const fn is_retriable(self) -> bool {
        matches!(self, Self::Throttled | Self::Transient | Self::Unknown)
    }

    /// Whether a call that failed whole with it may have failed for one of its entries, and may go through
    /// without that one.
    pub(crate) const fn may_be_of_one_entry(self) -> bool {
        matches!(self, Self::Refused | Self::TooLarge)
    }
}

impl ServiceError {
    /// An error of this kind, with the service's code and message.
    pub fn new(kind: ErrorKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, code: code.into(), message: message.into() }
    }

    /// The service answered, but not for this entry.
    pub fn no_answer() -> Self {
        Self::new(ErrorKind::Transient, "", "the service gave no answer for this entry")
    }

    pub(crate) fn panicked() -> Self {
        Self::new(ErrorKind::Panicked, "", "the operation panicked")
    }
}

/// `Code: message`, or the one there is.
impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code.as_str(), self.message.as_str()) {
            ("", "") => f.write_str("no code, no message"),
            ("", message) => f.write_str(message),
            (code, "") => write!(f, "{code}: no message"),
            (code, message) => write!(f, "{code}: {message}"),
        }
    }
}

impl std::error::Error for ServiceError {}
