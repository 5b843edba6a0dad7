use std::hash::Hasher;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher13;

/// One generator for each fault and purpose.
pub(crate) fn generator(seed: u64, fault: &str, purpose: &str) -> Xoshiro256PlusPlus {
    let mut hasher = SipHasher13::new();
    hasher.write(&seed.to_le_bytes());
    hasher.write(fault.as_bytes());
    // No name has a colon, so no two inputs meet.
    hasher.write(b":");
    hasher.write(purpose.as_bytes());
    Xoshiro256PlusPlus::seed_from_u64(hasher.finish())
}
