//! Outcome of a delivery: each entry is delivered, or handed back with an error.

use std::collections::BTreeMap;
use std::fmt;

use crate::operation::{Operation, ServiceError};

/// The result of a delivery in which every entry was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered<R = ()> {
    /// The service's receipt for each entry, in the order of the input.
    pub receipts: Vec<R>,
    /// Number of API calls made.
    pub calls: u64,
    /// Number of calls that resent at least one entry.
    pub retries: u64,
}

/// The error for a delivery in which some entries were not delivered. Holds the undelivered entries, each with its own
/// error, in the order of the input.
///
/// The error can be logged: its `Display` and `Debug` forms do not contain any entries.
#[derive(PartialEq, Eq)]
pub struct Undelivered<E, R = ()> {
    /// Entries that were not delivered, in ascending order of [`index`](Left::index); never empty.
    pub entries: Vec<Left<E>>,
    /// Entries that were delivered, in ascending order of [`index`](Sent::index).
    pub delivered: Vec<Sent<R>>,
    /// Number of API calls made.
    pub calls: u64,
    /// Number of calls that resent at least one entry.
    pub retries: u64,
}

/// Result of a delivery with the operation `O`.
pub type DeliveryResult<O> = Result<
    Delivered<<O as Operation>::Receipt>,
    Undelivered<<O as Operation>::Entry, <O as Operation>::Receipt>,
>;

/// An entry that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<R = ()> {
    /// Index of the entry in the input, from 0.
    pub index: usize,
    /// The service's receipt for the entry.
    pub receipt: R,
}

/// An entry that was not delivered, handed back with an error.
#[derive(Clone, PartialEq, Eq)]
pub struct Left<E> {
    /// Index of the entry in the input, from 0.
    pub index: usize,
    /// The entry itself, as the caller passed it in.
    pub entry: E,
    /// The reason why the entry was not delivered.
    pub cause: EntryError,
    /// Number of calls that carried the entry. After several calls, the entry may have arrived. After one call, it
    /// may have arrived if the operation panicked, if the entry's error is retriable, or if the cause is
    /// [`Unanswered`](EntryError::Unanswered), [`Interrupted`](EntryError::Interrupted),
    /// [`Halted`](EntryError::Halted) or [`Behind`](EntryError::Behind).
    pub calls: u64,
}

/// The reason why an entry was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The entry is over the service's size limit, and was not sent.
    #[error("too large: {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Size of the entry in bytes, as the service counts it.
        size: usize,
        /// The size limit that the entry exceeds, in bytes.
        limit: usize,
    },
    /// The service refused the entry, or refused the whole call for a reason that has nothing to do with the entry,
    /// such as a missing permission.
    #[error("refused: {0}")]
    Refused(ServiceError),
    /// The entry failed and has no retries left. Contains its last error.
    #[error("no retries left: {0}")]
    Exhausted(ServiceError),
    /// The deadline passed before the entry was sent, or before it was sent again. Contains the entry's last error, or
    /// `None` if the entry was never sent.
    #[error("not sent before the deadline{}", since(.0))]
    Stopped(Option<ServiceError>),
    /// The future from [`Sender::batcher`](crate::Sender::batcher) was dropped. Contains the entry's last error, if
    /// any. A call in flight may have delivered the entry.
    #[error("interrupted{}", since(.0))]
    Interrupted(Option<ServiceError>),
    /// The deadline given to [`Sender::send_until`](crate::Sender::send_until) passed while a call with the entry was
    /// in flight, so the entry may have arrived.
    #[error("sent, and not answered before the deadline")]
    Unanswered,
    /// A call with other entries failed with this error, which ended the delivery before this entry was sent or sent
    /// again. Possible causes: missing credentials, a missing permission, a missing queue or other resource, a service
    /// that refuses every entry, or calls that kept failing until the retries ran out.
    #[error("not sent, because its call would fail as others did: {0}")]
    Halted(ServiceError),
    /// An earlier entry in the same [`Lane`](crate::Lane) was not delivered, so this entry was not sent, or not sent
    /// again.
    #[error("not sent, because an earlier entry of the same group or key was not delivered")]
    Behind,
}

impl EntryError {
    /// Returns the entry's last error, or the error that ended the delivery. `None` if there was no error.
    pub fn error(&self) -> Option<&ServiceError> {
        match self {
            Self::Refused(error) | Self::Exhausted(error) | Self::Halted(error) => Some(error),
            Self::Stopped(error) | Self::Interrupted(error) => error.as_ref(),
            Self::TooLarge { .. } | Self::Behind | Self::Unanswered => None,
        }
    }
}

fn since(error: &Option<ServiceError>) -> String {
    error.as_ref().map(|error| format!(", after {error}")).unwrap_or_default()
}

impl<R> Delivered<R> {
    /// Returns the number of delivered entries.
    pub fn count(&self) -> usize {
        self.receipts.len()
    }
}

impl<E, R> Undelivered<E, R> {
    /// Lists the outcome of every entry, in the order of the input.
    pub fn by_entry(self) -> Vec<Result<R, EntryError>> {
        let left = self.entries.into_iter().map(|left| (left.index, Err(left.cause)));
        let sent = self.delivered.into_iter().map(|sent| (sent.index, Ok(sent.receipt)));
        left.chain(sent).collect::<BTreeMap<usize, _>>().into_values().collect()
    }
}

/// Lists the outcome of every entry, in the order of the input, whether or not all were delivered.
pub fn by_entry<E, R>(outcome: Result<Delivered<R>, Undelivered<E, R>>) -> Vec<Result<R, EntryError>> {
    match outcome {
        Ok(delivered) => delivered.receipts.into_iter().map(Ok).collect(),
        Err(undelivered) => undelivered.by_entry(),
    }
}

impl<E, R> fmt::Display for Undelivered<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, all) = (self.entries.len(), self.entries.len() + self.delivered.len());
        let entries = if all == 1 { "entry was" } else { "entries were" };
        write!(f, "{left} of {all} {entries} not delivered")?;
        match self.entries.first() {
            Some(Left { index, cause, .. }) => write!(f, "; the first, number {index}: {cause}"),
            None => Ok(()),
        }
    }
}

impl<E, R> fmt::Debug for Undelivered<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, delivered, calls, retries } = self;
        f.debug_struct("Undelivered")
            .field("entries", entries)
            .field("delivered", &delivered.len())
            .field("calls", calls)
            .field("retries", retries)
            .finish()
    }
}

impl<E> fmt::Debug for Left<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, cause, calls, entry: _ } = self;
        f.debug_struct("Left")
            .field("index", index)
            .field("cause", cause)
            .field("calls", calls)
            .finish_non_exhaustive()
    }
}

impl<E, R> std::error::Error for Undelivered<E, R> {}

/// Formats the entry's index and its error, never the entry itself.
impl<E> fmt::Display for Left<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {} was not delivered: {}", self.index, self.cause)
    }
}

impl<E> std::error::Error for Left<E> {}
