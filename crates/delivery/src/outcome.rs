//! The outcome of a delivery: each entry is delivered, or left with its cause.

use std::collections::BTreeMap;
use std::fmt;

use crate::operation::{Operation, ServiceError};

/// Every entry was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered<R = ()> {
    /// The service's receipt for each entry, in the order of the input.
    pub receipts: Vec<R>,
    /// API calls made.
    pub calls: u64,
    /// Calls that carried an entry sent before.
    pub retries: u64,
}

/// Some entries were not delivered. Each is here, with its cause, in the order of input.
///
/// Its `Display` and `Debug` texts contain no entry, so it can be logged.
#[derive(PartialEq, Eq)]
pub struct Undelivered<E, R = ()> {
    /// The entries that were left, by rising [`index`](Left::index); never empty.
    pub entries: Vec<Left<E>>,
    /// The entries that were delivered, by rising [`index`](Sent::index).
    pub delivered: Vec<Sent<R>>,
    /// API calls made.
    pub calls: u64,
    /// Calls that carried an entry sent before.
    pub retries: u64,
}

/// The outcome of a delivery.
pub type Outcome<O> = Result<
    Delivered<<O as Operation>::Receipt>,
    Undelivered<<O as Operation>::Entry, <O as Operation>::Receipt>,
>;

/// An entry that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<R = ()> {
    /// Its index in the input, from 0.
    pub index: usize,
    /// The service's receipt.
    pub receipt: R,
}

/// An entry that was not delivered.
#[derive(Clone, PartialEq, Eq)]
pub struct Left<E> {
    /// Its index in the input, from 0.
    pub index: usize,
    /// The entry, as it was given.
    pub entry: E,
    /// The reason.
    pub cause: Cause,
    /// Calls that carried it. After more than one call it may have arrived all the same. The same holds after one call
    /// without a definite refusal: a retriable error, a panic, [`Cause::Halted`] or [`Cause::Behind`].
    pub calls: u64,
}

/// The reason why an entry was left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// It is over the limit, and was not sent.
    #[error("too large: {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Bytes, as the service counts them.
        size: usize,
        /// The service's limit.
        limit: usize,
    },
    /// The service refused it. Or it refused the whole call for a reason that is not the entries' fault, such as a
    /// missing permission.
    #[error("refused: {0}")]
    Refused(ServiceError),
    /// No retries are left; this is the last error.
    #[error("no retries left: {0}")]
    Exhausted(ServiceError),
    /// The deadline came before it was sent (again). Contains its last error, if it was sent before.
    #[error("not sent before the deadline{}", since(.0))]
    Stopped(Option<ServiceError>),
    /// The delivery was ended early. Contains its last error, if any. A call that was under way may have delivered it.
    #[error("interrupted{}", since(.0))]
    Interrupted(Option<ServiceError>),
    /// The hard deadline came while a call carried it, so it may have arrived.
    #[error("sent, and not answered before the deadline")]
    Unanswered,
    /// Another call ended the delivery with this error, so it was not sent (again): permissions, credentials or the
    /// queue itself are missing, or every call failed until retries ran out.
    #[error("not sent, because its call would fail as others did: {0}")]
    Halted(ServiceError),
    /// An earlier entry of its [`Lane`](crate::Lane) was left, so it was not sent (again).
    #[error("not sent, because an earlier entry of the same group or key was not delivered")]
    Behind,
    /// It failed, and the service took a later entry of its [`Lane`](crate::Lane) in the same call. Sent again, it
    /// would arrive after that one.
    #[error("failed, although a later entry of its group was delivered: {0}")]
    Overtaken(ServiceError),
}

impl Cause {
    /// The entry's last error, or the one that ended the delivery.
    pub fn error(&self) -> Option<&ServiceError> {
        match self {
            Self::Refused(error) | Self::Exhausted(error) | Self::Overtaken(error) | Self::Halted(error) => {
                Some(error)
            }
            Self::Stopped(error) | Self::Interrupted(error) => error.as_ref(),
            Self::TooLarge { .. } | Self::Behind | Self::Unanswered => None,
        }
    }
}

fn since(error: &Option<ServiceError>) -> String {
    error.as_ref().map(|error| format!(", after {error}")).unwrap_or_default()
}

impl<R> Delivered<R> {
    /// The number of delivered entries.
    pub fn count(&self) -> usize {
        self.receipts.len()
    }
}

impl<E, R> Undelivered<E, R> {
    /// The outcome of every entry, in the order of the input.
    pub fn by_entry(self) -> Vec<Result<R, Cause>> {
        let left = self.entries.into_iter().map(|left| (left.index, Err(left.cause)));
        let sent = self.delivered.into_iter().map(|sent| (sent.index, Ok(sent.receipt)));
        left.chain(sent).collect::<BTreeMap<usize, _>>().into_values().collect()
    }
}

/// The outcome of every entry, in the order of the input, however the delivery ended.
pub fn by_entry<E, R>(outcome: Result<Delivered<R>, Undelivered<E, R>>) -> Vec<Result<R, Cause>> {
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

/// Its place and its cause.
impl<E> fmt::Display for Left<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {} was not delivered: {}", self.index, self.cause)
    }
}

impl<E> std::error::Error for Left<E> {}

/// The progress of a delivery, after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries in all; for a stream, those taken from it so far.
    pub entries: usize,
    /// Entries that were delivered.
    pub delivered: usize,
    /// Entries that were given up; the rest are still to go.
    pub left: usize,
    /// API calls made.
    pub calls: u64,
    /// Calls that carried an entry sent before.
    pub retries: u64,
}
