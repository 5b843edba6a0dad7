//! Seeded random number generators, which always produce the same numbers for the same message.

use std::hash::Hasher;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher13;

/// Returns a random number generator seeded with an id and a number. The same seed produces the same values on every
/// platform.
pub(crate) fn generator(id: &str, number: u64) -> Xoshiro256PlusPlus {
    // The input is written as bytes rather than through `Hash`, whose framing differs between platforms. The number is
    // always the last eight bytes, so different inputs never have the same bytes.
    let mut hasher = SipHasher13::new();
    hasher.write(id.as_bytes());
    hasher.write(&number.to_le_bytes());
    Xoshiro256PlusPlus::seed_from_u64(hasher.finish())
}
