//! The pace at which a command processes dead-letters.

use std::fmt;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::dead::scan::ROUND;
use crate::deployment::queue::HIDDEN_FOR;
use crate::numbers::{rate_flag, read_rate};
use crate::operator::Operator;

/// A rate in dead-letters per second, above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace(pub f64);

impl Pace {
    /// The default pace for a redrive: slow, because the function may only just have recovered.
    pub const REDRIVE: Self = Self(50.0);
    /// The default pace for a discard or an import.
    pub const FILE: Self = Self(500.0);

    /// Parses a pace such as `50/s` or `600/m`.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`read_rate`].
    pub fn read(text: &str) -> Result<Self, String> {
        read_rate(text).map(Self)
    }

    /// The size of the next batch. The first batch is a single dead-letter, so that only one is duplicated if deleting
    /// is not permitted. Later batches are as large as the pace allows for one second.
    pub(super) fn at_once(self, tried: u64) -> usize {
        if tried == 0 { 1 } else { (self.0 as usize).clamp(1, ROUND) }
    }

    /// The maximum number of dead-letters to receive at once. All of them can be processed well before they reappear.
    pub(super) fn at_hand(self) -> usize {
        ((self.0 * HIDDEN_FOR.as_secs_f64() / 3.0) as usize).clamp(1, ROUND)
    }

    pub(super) fn time_for(self, dead_letters: u64) -> Duration {
        Duration::try_from_secs_f64(dead_letters as f64 / self.0).unwrap_or(Duration::MAX)
    }

    /// Waits until this pace allows the next dead-letter. `dead_letters` is the number processed since `begin`.
    /// Returns false if interrupted.
    pub(super) async fn rest(self, operator: &Operator, begin: Timestamp, dead_letters: u64) -> bool {
        let left = self.time_for(dead_letters).saturating_sub(operator.now().since(begin));
        tokio::select! {
            biased;
            () = operator.interrupt.raised() => false,
            () = operator.account.aws.sleep(left) => true,
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rate_flag(self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pace_is_read_as_it_is_written() {
        for (pace, text) in [(Pace::REDRIVE, "50/s"), (Pace::FILE, "500/s")] {
            assert_eq!((pace.to_string(), Pace::read(text)), (text.to_owned(), Ok(pace)));
        }
    }

    #[test]
    fn one_seconds_dead_letters_go_together() {
        let numbers = [1e-8, 0.1, 0.9, 1.0, 7.9, 50.0, 1e6].map(Pace);
        assert_eq!(numbers.map(|pace| pace.at_once(1)), [1, 1, 1, 1, 7, 50, 80]);
        assert_eq!(numbers.map(Pace::at_hand), [1, 30, 80, 80, 80, 80, 80]);
        assert_eq!(Pace(50.0).time_for(812), Duration::from_millis(16_240));
        assert_eq!(Pace(1e-8).time_for(u64::MAX), Duration::MAX);
    }

    proptest! {
        #[test]
        fn dead_letters_at_hand_are_done_before_visible(exponent in -7.0..6.0) {
            let pace = Pace(10f64.powf(exponent));
            // The last dead-letter has to wait for all the others.
            let before = pace.at_hand() as u64 - 1;
            prop_assert!(pace.time_for(before) <= HIDDEN_FOR / 3);
        }
    }
}
