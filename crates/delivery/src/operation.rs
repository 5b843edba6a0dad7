//! The [`Operation`] trait, which a sender uses to call a batch API, and the errors that the API returns.

use std::fmt;
use std::time::Duration;

use crate::lanes::Lane;
use crate::limits::Limits;

/// The result of sending one entry: the service's receipt, or an error.
pub type EntryAnswer<R = ()> = Result<R, ServiceError>;

/// A service's batch API. A sender packs entries into calls to the API, and retries failed entries.
pub trait Operation {
    /// One item in a batch, such as a message or a record.
    type Entry;

    /// The data that the service returns for an accepted entry, such as a message's id; `()` if the service returns no
    /// data.
    type Receipt;

    /// Returns the limits on an API call. They must not change while a sender uses the operation.
    fn limits(&self) -> Limits;

    /// Returns the size of an entry in bytes, as the service counts it.
    fn size(&self, entry: &Self::Entry) -> usize;

    /// Returns the size of an entry in bytes, as counted towards the limit on a call's size. The default is
    /// [`size`](Self::size).
    fn size_in_call(&self, entry: &Self::Entry) -> usize {
        self.size(entry)
    }

    /// Checks an entry before it is sent. An entry that fails the check is handed back as
    /// [refused](crate::EntryError::Refused) without being sent.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the service would certainly refuse the entry, or every call that contains it.
    fn check(&self, _entry: &Self::Entry) -> Result<(), ServiceError> {
        Ok(())
    }

    /// Returns the [`Lane`] in which an entry keeps its order, or `None` if its position does not matter.
    fn lane(&self, _entry: &Self::Entry) -> Option<Lane> {
        None
    }

    /// Makes one API call with these entries: at least one, within the limits, and no two from the same lane.
    ///
    /// Returns a result for each entry, in order. If the list is too short, the entries at the end count as unanswered.
    /// For an unanswered entry in the middle, return [`ServiceError::no_answer`].
    ///
    /// # Errors
    ///
    /// Fails if the whole call failed. [`Denied`](crate::ErrorKind::Denied) and [`Missing`](crate::ErrorKind::Missing)
    /// then end the delivery, because every other call would fail too.
    fn call(
        &self,
        entries: &[&Self::Entry],
    ) -> impl Future<Output = Result<Vec<EntryAnswer<Self::Receipt>>, ServiceError>> + Send;
}

/// An error that a service returned for an entry or for a whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceError {
    /// Kind of the error, which decides whether the entry is retried.
    pub kind: ErrorKind,
    /// The service's error code, such as `AccessDeniedException`; empty if the error has no code.
    pub code: String,
    /// The service's message, or the chain of causes if there was no response. **The message may quote an entry**: log
    /// the message only if you know that this service never quotes entries.
    pub message: String,
    /// The pause that the service requested, if any. The sender waits until the pause is over before it starts another
    /// call, but the request adds at most 5 s to its own wait.
    pub retry_after: Option<Duration>,
    /// True if it is certain that only some entries in the call caused the refusal.
    pub(crate) is_of_some: bool,
}

/// The kind of a [`ServiceError`], which decides whether the entry is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The service asked for fewer calls. The entry is retried, and the whole sender slows down.
    Throttled,
    /// A 5xx response, a timeout, a lost connection, or a response without a result for the entry. The entry is
    /// retried, although it may have arrived.
    Transient,
    /// An error of unknown meaning. The entry is retried.
    Unknown,
    /// The request or the entry is wrong, and a retry cannot succeed. If a whole call with several entries is refused,
    /// the call is sent again in halves.
    Refused,
    /// Permissions, credentials or keys are missing or wrong, and someone must correct them. If a whole call is denied,
    /// the delivery ends.
    Denied,
    /// The queue, table, stream, bus or function does not exist. If a whole call fails for this reason, the delivery
    /// ends.
    Missing,
    /// The request exceeds one of the service's size limits. A call with several entries is sent again in halves.
    TooLarge,
    /// The operation panicked, which is a bug. The entry may have arrived.
    Panicked,
}

impl ErrorKind {
    /// Returns true if a retry may succeed.
    pub const fn is_retriable(self) -> bool {
        matches!(self, Self::Throttled | Self::Transient | Self::Unknown)
    }

    /// Returns true if a call that failed with this kind of error may succeed without one of its entries.
    pub(crate) const fn may_be_of_one_entry(self) -> bool {
        matches!(self, Self::Refused | Self::TooLarge)
    }

    /// Returns true if an error of this kind means that every further call would fail in the same way.
    pub(crate) const fn is_of_every_call(self) -> bool {
        matches!(self, Self::Denied | Self::Missing)
    }
}

impl ServiceError {
    /// Creates an error of the given kind, with the service's code and message.
    pub fn new(kind: ErrorKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, code: code.into(), message: message.into(), retry_after: None, is_of_some: false }
    }

    /// Sets the pause that the service requested.
    #[must_use]
    pub fn with_retry_after(self, pause: Option<Duration>) -> Self {
        Self { retry_after: pause, ..self }
    }

    /// Creates the error for an entry that is missing from the service's response.
    pub fn no_answer() -> Self {
        Self::new(ErrorKind::Transient, "", "the service gave no answer for this entry")
    }

    pub(crate) fn panicked() -> Self {
        Self::new(ErrorKind::Panicked, "", "the operation panicked")
    }
}

/// Formats as `Code: message`.
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
