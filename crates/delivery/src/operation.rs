//! What a batch API is to the sender: [`Operation`] and its errors.

use std::fmt;
use std::time::Duration;

use crate::lanes::Lane;
use crate::limits::Limits;

/// What a service answered for one entry: its receipt, or an error.
pub type Answer<R = ()> = Result<R, ServiceError>;

/// A batch API: its entries, their sizes and limits, and one call. Packing, retrying and counting are the sender's.
pub trait Operation {
    /// What is delivered.
    type Entry;

    /// The service's answer for an entry that it took, such as a message's id; `()` for none.
    type Receipt: Clone;

    /// What one call takes; asked when its sender is made.
    fn limits(&self) -> Limits;

    /// Bytes of the entry as the service counts them.
    fn size(&self, entry: &Self::Entry) -> usize;

    /// Bytes the entry takes of a call, where the service counts them otherwise there.
    fn size_in_call(&self, entry: &Self::Entry) -> usize {
        self.size(entry)
    }

    /// Whether the service would surely refuse the entry, or a whole call for it. It is then
    /// [refused](crate::Cause::Refused) unsent.
    ///
    /// # Errors
    ///
    /// Why the service would refuse it.
    fn check(&self, _entry: &Self::Entry) -> Result<(), ServiceError> {
        Ok(())
    }

    /// The [`Lane`] the entry must keep to, if any.
    fn lane(&self, _entry: &Self::Entry) -> Option<Lane> {
        None
    }

    /// One API call with these entries: at least one, within the limits, no two of one lane (unless it is
    /// [`together`](Lane::together)).
    ///
    /// Answers for each in their order. One that is absent from the end of the list was not answered;
    /// for one that is absent from its middle, answer [`ServiceError::no_answer`].
    ///
    /// # Errors
    ///
    /// The call failed whole. [`Denied`](crate::ErrorKind::Denied) and [`Missing`](crate::ErrorKind::Missing)
    /// then end the delivery: no other call would fare better.
    fn call(
        &self,
        entries: &[&Self::Entry],
    ) -> impl Future<Output = Result<Vec<Answer<Self::Receipt>>, ServiceError>> + Send;
}

/// A service's error for an entry or a whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceError {
    /// Its kind, which decides whether it is retried.
    pub kind: ErrorKind,
    /// The service's code, such as `AccessDeniedException`; empty where there was none.
    pub code: String,
    /// The service's message, or the chain of causes where it never answered. **It may quote what was
    /// sent**: log it only if you know that this service does not.
    pub message: String,
    /// The pause that the service asked for: no call of the sender begins before its end, or before 5 s more are over
    /// than the sender would have waited anyway.
    pub retry_after: Option<Duration>,
    /// A call was refused for some of its entries for sure, and not for all.
    pub(crate) is_of_some: bool,
}

/// The kind of a [`ServiceError`], which decides whether it is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The service asked for less: retried, and the whole sender slows down.
    Throttled,
    /// A 5xx, a timeout, a lost connection, an entry without an answer: retried. The entry may have
    /// arrived nevertheless.
    Transient,
    /// An unknown error: retried.
    Unknown,
    /// The request or the entry is wrong and stays so. A call of several entries is sent again in halves.
    Refused,
    /// Permissions, credentials or keys are wrong until someone corrects them, or there are none. Of a whole
    /// call, it ends the delivery.
    Denied,
    /// The queue, table, stream, bus or function does not exist. Of a whole call, it ends the delivery.
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

    /// Whether a call that failed whole with it says that every other call would.
    pub(crate) const fn is_of_every_call(self) -> bool {
        matches!(self, Self::Denied | Self::Missing)
    }
}

impl ServiceError {
    /// An error of this kind, with the service's code and message.
    pub fn new(kind: ErrorKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, code: code.into(), message: message.into(), retry_after: None, is_of_some: false }
    }

    /// The same, and the service asked for this pause.
    #[must_use]
    pub fn with_retry_after(self, pause: Option<Duration>) -> Self {
        Self { retry_after: pause, ..self }
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
