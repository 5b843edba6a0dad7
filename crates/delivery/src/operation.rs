//! [`Operation`], the sender's view of a batch API, and its errors.

use std::fmt;
use std::time::Duration;

use crate::lanes::Lane;
use crate::limits::Limits;

/// The service's answer for one entry: its receipt, or an error.
pub type Answer<R = ()> = Result<R, ServiceError>;

/// A batch API: its entries, their sizes and limits, and one call. The sender packs, retries and counts.
pub trait Operation {
    /// An entry to deliver.
    type Entry;

    /// The service's answer for an accepted entry, such as a message's id; `()` for none.
    type Receipt: Clone;

    /// The limits of one call; read when a sender is made.
    fn limits(&self) -> Limits;

    /// Bytes of the entry, as the service counts them.
    fn size(&self, entry: &Self::Entry) -> usize;

    /// Bytes that the entry takes in a call, where the service counts them differently there.
    fn size_in_call(&self, entry: &Self::Entry) -> usize {
        self.size(entry)
    }

    /// Checks for entries that the service would surely refuse, alone or with their whole call. Such an entry is
    /// [refused](crate::Cause::Refused) unsent.
    ///
    /// # Errors
    ///
    /// Fails with the service's error for an entry that it would refuse.
    fn check(&self, _entry: &Self::Entry) -> Result<(), ServiceError> {
        Ok(())
    }

    /// The entry's [`Lane`], if it must keep an order.
    fn lane(&self, _entry: &Self::Entry) -> Option<Lane> {
        None
    }

    /// Makes one API call with these entries: at least one, within the limits, no two of one lane (unless the lane is
    /// [`together`](Lane::together)).
    ///
    /// Returns an answer for each entry, in order. Entries missing from the end of the list count as not answered; for
    /// one in the middle, return [`ServiceError::no_answer`].
    ///
    /// # Errors
    ///
    /// The call failed whole. [`Denied`](crate::ErrorKind::Denied) and [`Missing`](crate::ErrorKind::Missing) then end
    /// the delivery, because every other call would fail too.
    fn call(
        &self,
        entries: &[&Self::Entry],
    ) -> impl Future<Output = Result<Vec<Answer<Self::Receipt>>, ServiceError>> + Send;
}

/// A service's error for an entry or a whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceError {
    /// Decides whether it is retried.
    pub kind: ErrorKind,
    /// The service's code, such as `AccessDeniedException`; empty if there was none.
    pub code: String,
    /// The service's message, or the chain of causes if it never answered. **It may quote what was sent**: log it only
    /// if you know that this service does not.
    pub message: String,
    /// The pause that the service asked for. No call of the sender begins before its end, unless it is more than 5 s
    /// longer than the sender would have waited anyway.
    pub retry_after: Option<Duration>,
    /// A call was certainly refused for some of its entries, but not for all.
    pub(crate) is_of_some: bool,
}

/// The kind of a [`ServiceError`], which decides whether it is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The service asked for fewer calls: retried, and the whole sender slows down.
    Throttled,
    /// A 5xx, a timeout, a lost connection, or an entry without an answer: retried. The entry may have arrived all the
    /// same.
    Transient,
    /// An unknown error: retried.
    Unknown,
    /// The request or the entry is wrong, and will stay so. A call of several entries is sent again in halves.
    Refused,
    /// Permissions, credentials or keys are missing, or wrong until someone corrects them. For a whole call, it ends
    /// the delivery.
    Denied,
    /// The queue, table, stream, bus or function does not exist. For a whole call, it ends the delivery.
    Missing,
    /// A limit of the service was exceeded. A call of several entries is sent again in halves.
    TooLarge,
    /// The operation panicked: a bug. The entry may have arrived.
    Panicked,
}

impl ErrorKind {
    /// Returns true if another call may succeed.
    pub const fn is_retriable(self) -> bool {
        matches!(self, Self::Throttled | Self::Transient | Self::Unknown)
    }

    /// Returns true if a call that failed whole with this kind may succeed without one of its entries.
    pub(crate) const fn may_be_of_one_entry(self) -> bool {
        matches!(self, Self::Refused | Self::TooLarge)
    }

    /// Returns true if every other call would fail too, after a call that failed whole with this kind.
    pub(crate) const fn is_of_every_call(self) -> bool {
        matches!(self, Self::Denied | Self::Missing)
    }
}

impl ServiceError {
    /// An error of this kind, with the service's code and message.
    pub fn new(kind: ErrorKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, code: code.into(), message: message.into(), retry_after: None, is_of_some: false }
    }

    /// The same error, with the pause that the service asked for.
    #[must_use]
    pub fn with_retry_after(self, pause: Option<Duration>) -> Self {
        Self { retry_after: pause, ..self }
    }

    /// The error of an entry that is missing from the service's answer.
    pub fn no_answer() -> Self {
        Self::new(ErrorKind::Transient, "", "the service gave no answer for this entry")
    }

    pub(crate) fn panicked() -> Self {
        Self::new(ErrorKind::Panicked, "", "the operation panicked")
    }
}

/// `Code: message`, or whichever there is.
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
