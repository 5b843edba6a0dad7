use std::fmt;

use crate::ServiceError;

/// Every entry was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Entries.
    pub count: usize,
    /// API calls made.
    pub calls: u64,
    /// Those of them that carried an entry sent before.
    pub retries: u64,
}

/// Some entries were not delivered. Each is here, with its cause, in the order of input.
///
/// Its text and its `Debug` form hold no entry, so it can be logged.
#[derive(PartialEq, Eq)]
pub struct Undelivered<E> {
    /// What was left, by rising [`index`](Left::index); never empty.
    pub entries: Vec<Left<E>>,
    /// Entries that were delivered.
    pub delivered: usize,
    /// API calls made.
    pub calls: u64,
    /// Those of them that carried an entry sent before.
    pub retries: u64,
}

/// An entry that was not delivered.
#[derive(Clone, PartialEq, Eq)]
pub struct Left<E> {
    /// Its place in the input, from 0.
    pub index: usize,
    /// The entry, as it was given.
    pub entry: E,
    /// Why.
    pub cause: Cause,
    /// Calls that carried it. If there was more than one, or the last error is none that the service
    /// answered (it passes, or the operation panicked), the entry may have arrived all the same.
    pub calls: u64,
}

/// Why an entry was left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// It can never fit, and was not sent.
    #[error("too large: {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Bytes, as the service counts them.
        size: usize,
        /// Bytes the service takes.
        limit: usize,
    },
    /// The service refused it, or the whole call that carried it for what no entry is to blame for, such as
    /// a permission that is missing.
    #[error("refused: {0}")]
    Refused(ServiceError),
    /// No retries are left; this is the last error.
    #[error("no retries left: {0}")]
    Exhausted(ServiceError),
    /// The deadline came before it went out (again); its last error, if it was sent before.
    #[error("not sent before the deadline{}", since(.0))]
    Stopped(Option<ServiceError>),
    /// The delivery was ended before it was done; its last error, if it had one. A call that was
    /// under way for it may have delivered it.
    #[error("interrupted{}", since(.0))]
    Interrupted(Option<ServiceError>),
    /// An earlier entry of its [`Lane`](crate::Lane) was left; it was not sent.
    #[error("not sent: an entry before it, of the same group or key, was left")]
    Behind,
}

impl Cause {
    /// The entry's last error, if it was sent and failed.
    pub fn error(&self) -> Option<&ServiceError> {
        match self {
            Self::Refused(error) | Self::Exhausted(error) => Some(error),
            Self::Stopped(error) | Self::Interrupted(error) => error.as_ref(),
            Self::TooLarge { .. } | Self::Behind => None,
        }
    }
}

fn since(error: &Option<ServiceError>) -> String {
    error.as_ref().map(|error| format!(", after {error}")).unwrap_or_default()
}

impl<E> Undelivered<E> {
    /// What became of every entry, in the order of input.
    pub fn by_entry(self) -> Vec<Result<(), Cause>> {
        let mut outcomes = vec![Ok(()); self.delivered + self.entries.len()];
        for left in self.entries {
            outcomes[left.index] = Err(left.cause);
        }
        outcomes
    }
}

/// What became of every entry, in the order of input, however the delivery ended.
pub fn by_entry<E>(outcome: Result<Delivered, Undelivered<E>>) -> Vec<Result<(), Cause>> {
    match outcome {
        Ok(delivered) => vec![Ok(()); delivered.count],
        Err(undelivered) => undelivered.by_entry(),
    }
}

impl<E> fmt::Display for Undelivered<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, all) = (self.entries.len(), self.entries.len() + self.delivered);
        let entries = if all == 1 { "entry was" } else { "entries were" };
        write!(f, "{left} of {all} {entries} not delivered")?;
        match self.entries.first() {
            Some(Left { index, cause, .. }) => write!(f, "; the first, number {index}: {cause}"),
            None => Ok(()),
        }
    }
}

impl<E> fmt::Debug for Undelivered<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, delivered, calls, retries } = self;
        f.debug_struct("Undelivered")
            .field("entries", entries)
            .field("delivered", delivered)
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

impl<E> std::error::Error for Undelivered<E> {}

/// How far a delivery is, after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries in all.
    pub entries: usize,
    /// Those that were delivered.
    pub delivered: usize,
    /// Those that were given up; the others are still to go.
    pub left: usize,
    /// API calls made.
    pub calls: u64,
    /// Those of them that carried an entry sent before.
    pub retries: u64,
}
