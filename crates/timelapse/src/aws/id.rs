use std::fmt;

use rand::Rng;
use uuid::{Builder, Uuid};

/// A version 4 UUID, as AWS uses them for request and message ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(Uuid);

impl Id {
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        Self(Builder::from_random_bytes(random.to_be_bytes()).into_uuid())
    }

    /// Appends the usual 36 characters. Not by way of `Display`, which is slower: three ids are written
    /// for each retry.
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
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn writes_as_a_version_4_uuid() {
        let mut text = String::from("id ");
        Id(Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef)).write(&mut text);
        assert_eq!(text, "id 01234567-89ab-4def-8123-456789abcdef");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let (one, other) = (Id::draw(&mut rng).to_string(), Id::draw(&mut rng).to_string());
        assert_ne!(one, other);
        assert_eq!(one.as_bytes()[14], b'4');
        assert!(matches!(one.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{one}");
    }
}
