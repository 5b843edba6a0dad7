use std::future::Future;
use std::sync::Arc;

use crate::ServiceError;
use crate::limits::Limits;

/// What a service answered for one entry: its receipt, or an error.
pub type Answer<R = ()> = Result<R, ServiceError>;

/// A batch API: what its entries are, and one call of it. Everything else is decided on the other
/// side, so an implementation packs nothing, retries nothing and counts nothing.
pub trait Operation {
    /// What is delivered.
    type Entry;

    /// What the service says of an entry that it took, such as a message's id; `()` if nothing.
    type Receipt;

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

/// Entries of one lane go out one at a time, in the order of input, never two of them in one call:
/// a FIFO queue's message group, or the key of a DynamoDB item. When one of them is left, those
/// behind it are left too ([`Cause::Behind`](crate::Cause::Behind)): going on would change their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    name: Arc<[u8]>,
    pub(crate) together: bool,
    pub(crate) last_wins: bool,
}

impl Lane {
    /// The lane these parts name together, such as a table and a key. No two lists of parts name the same one.
    pub fn new<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut name = Vec::new();
        for part in parts {
            name.extend_from_slice(&part.as_ref().len().to_be_bytes());
            name.extend_from_slice(part.as_ref());
        }
        Self { name: name.into(), together: false, last_wins: false }
    }

    /// The service keeps the order of a call's entries: several of this lane may go in one call, though not
    /// in two at once. If it takes a later one of them and not an earlier, the earlier one is left
    /// ([`Cause::Overtaken`](crate::Cause::Overtaken)), and those behind it.
    #[must_use]
    pub fn together(self) -> Self {
        Self { together: true, ..self }
    }

    /// Only the last entry of the lane counts in the end, so one that can never fit, and is never sent,
    /// leaves none behind it.
    #[must_use]
    pub fn last_wins(self) -> Self {
        Self { last_wins: true, ..self }
    }
}
