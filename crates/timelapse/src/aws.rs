//! Simulated AWS: an SQS queue, an event source mapping and asynchronous invocations, on a virtual clock.

use rand::Rng;
use uuid::{Builder, Uuid};

pub(crate) mod agenda;
pub(crate) mod mapping;
pub(crate) mod queue;
pub(crate) mod target;

/// Draws a version 4 UUID, the format of request ids and message ids in AWS.
pub(crate) fn draw_id(rng: &mut impl Rng) -> Uuid {
    let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
}

/// Appends the id to `text` in the usual 36-character form. This is faster than `Display`.
pub(crate) fn write_id(id: Uuid, text: &mut String) {
    text.push_str(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
}

#[cfg(test)]
mod tests;
