use std::collections::HashSet;
use std::hash::Hash as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Ids that were met before, at 16 bytes each and some room: two ids that differ are as good as never taken for one.
#[derive(Debug, Default)]
pub(super) struct Seen(HashSet<u128>);

impl Seen {
    /// Remembers the id; whether it is new.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        self.0.insert(digest(id))
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.contains(&digest(id))
    }
}

fn digest(id: &str) -> u128 {
    let mut hasher = SipHasher13::new();
    id.hash(&mut hasher);
    hasher.finish128().as_u128()
}
