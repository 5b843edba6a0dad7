use std::hash::Hasher;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher13;

/// The generator that an id and a number seed: the same wherever and whenever it is asked for.
pub(crate) fn generator(id: &str, number: u64) -> Xoshiro256PlusPlus {
    // Bytes are written one piece after another rather than through `Hash`, whose framing is not
    // the same on every platform. The id ends before the last eight bytes, so no two inputs meet.
    let mut hasher = SipHasher13::new();
    hasher.write(id.as_bytes());
    hasher.write(&number.to_le_bytes());
    Xoshiro256PlusPlus::seed_from_u64(hasher.finish())
}
