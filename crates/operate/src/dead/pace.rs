use std::time::Duration;

use super::queue::HIDDEN_FOR;
use super::scan::ROUND;

/// How many letters a second are acted on at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace(f64);

impl Pace {
    /// So many letters a second.
    ///
    /// # Panics
    ///
    /// If it is not a positive number.
    #[must_use]
    pub fn per_second(letters: f64) -> Self {
        assert!(letters.is_finite() && letters > 0.0, "a pace of {letters} letters a second");
        Self(letters)
    }

    /// Letters that are acted on at once: a second's.
    pub(super) fn at_once(self) -> usize {
        (self.0 as usize).clamp(1, ROUND)
    }

    /// Letters that may be at hand: their turn comes well before they are visible again.
    pub(super) fn at_hand(self) -> usize {
        ((self.0 * HIDDEN_FOR.as_secs_f64() / 3.0) as usize).clamp(1, ROUND)
    }

    /// How long so many letters take.
    #[must_use]
    pub fn time_for(self, letters: u64) -> Duration {
        Duration::try_from_secs_f64(letters as f64 / self.0).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_seconds_letters_go_at_once() {
        let numbers = [1e-8, 0.1, 0.9, 1.0, 7.9, 50.0, 1e6].map(Pace::per_second);
        assert_eq!(numbers.map(Pace::at_once), [1, 1, 1, 1, 7, 50, 80]);
        assert_eq!(numbers.map(Pace::at_hand), [1, 30, 80, 80, 80, 80, 80]);
        assert_eq!(Pace::per_second(50.0).time_for(812), Duration::from_millis(16_240));
        assert_eq!(Pace::per_second(1e-8).time_for(u64::MAX), Duration::MAX);
    }

    proptest! {
        #[test]
        fn no_letter_at_hand_comes_back_before_its_turn(exponent in -7.0..6.0) {
            let pace = Pace::per_second(10f64.powf(exponent));
            // The last waits for the turns of all before it.
            let before = pace.at_hand() as u64 - 1;
            prop_assert!(pace.time_for(before) <= HIDDEN_FOR / 3);
        }
    }
}
