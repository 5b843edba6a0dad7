use std::future::Future;

use crate::ServiceError;
use crate::limits::Limits;

/// What a service answered for one entry.
pub type Answer = Result<(), ServiceError>;

/// A batch API: what its entries are, and one call of it. Everything else is decided on the other
/// side, so an implementation packs nothing, retries nothing and counts nothing.
pub trait Operation {
    /// What is delivered.
    type Entry;

    /// What one call takes; asked once per delivery.
    fn limits(&self) -> Limits;

    /// Bytes of the entry as the service counts them.
    fn size(&self, entry: &Self::Entry) -> usize;

    /// Bytes the entry takes of a call, where the service counts them otherwise there.
    fn size_in_call(&self, entry: &Self::Entry) -> usize {
        self.size(entry)
    }

    /// The [`Lane`] the entry must keep to, if any.
    fn lane(&self, _entry: &Self::Entry) -> Option<Lane> {
        None
    }

    /// One API call with these entries: at least one, within the limits, no two of one lane.
    ///
    /// Answers for each in their order. One that is absent from the end of the list was not answered;
    /// for one that is absent from its middle, answer [`ServiceError::no_answer`].
    ///
    /// # Errors
    ///
    /// The call failed whole.
    fn call(&self, entries: &[&Self::Entry]) -> impl Future<Output = Result<Vec<Answer>, ServiceError>>;
}

/// Entries of one lane go out one at a time, in the order of input, never two of them in one call:
/// a FIFO queue's message group, or the key of a DynamoDB item. When one of them is left, those
/// behind it are left too ([`Cause::Behind`](crate::Cause::Behind)): going on would change their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane(Vec<u8>);

impl Lane {
    /// The lane these parts name together, such as a table and a key. No two lists of parts name the same one.
    pub fn new<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut name = Vec::new();
        for part in parts {
            name.extend_from_slice(&part.as_ref().len().to_be_bytes());
            name.extend_from_slice(part.as_ref());
        }
        Self(name)
    }
}
