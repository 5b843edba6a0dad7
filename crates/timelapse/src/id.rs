use std::fmt;

use rand::Rng;

/// A version 4 UUID, as AWS uses them for request and message ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u128);

impl Id {
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let version = random & !(0xf << 76) | 0x4 << 76;
        Self(version & !(0x3 << 62) | 0x2 << 62)
    }

    /// Appends the usual 36 characters. By hand: three ids are written for each retry.
    pub(crate) fn write(self, text: &mut String) {
        for nibble in 0..32u32 {
            if matches!(nibble, 8 | 12 | 16 | 20) {
                text.push('-');
            }
            let digit = (self.0 >> (124 - 4 * nibble)) as u32 & 0xf;
            text.push(char::from_digit(digit, 16).expect("BUG: four bits are one hexadecimal digit"));
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(36);
        self.write(&mut text);
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::Id;

    #[test]
    fn writes_as_a_version_4_uuid() {
        assert_eq!(
            Id(0x0123_4567_89ab_4def_8123_4567_89ab_cdef).to_string(),
            "01234567-89ab-4def-8123-456789abcdef"
        );
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let (one, other) = (Id::draw(&mut rng).to_string(), Id::draw(&mut rng).to_string());
        assert_ne!(one, other);
        assert_eq!(one.as_bytes()[14], b'4');
        assert!(matches!(one.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{one}");
    }
}
