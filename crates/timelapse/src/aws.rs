//! Simulated AWS: an SQS queue, an event source mapping and asynchronous invocations, on a virtual clock.

use std::fmt;

use rand::Rng;
use uuid::{Builder, Uuid};

pub(crate) mod agenda;
pub(crate) mod mapping;
pub(crate) mod queue;
pub(crate) mod target;

/// A version 4 UUID, the format of request ids and message ids in AWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(Uuid);

impl Id {
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        Self(Builder::from_random_bytes(random.to_be_bytes()).into_uuid())
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(Self)
    }

    /// Appends the id to `text` in the usual 36-character form. This is faster than `Display`.
    pub(crate) fn write(self, text: &mut String) {
        text.push_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
