use core::time::Duration;

use rand_core::Rng;

use crate::random::uniform;

/// How long an error asks its caller to wait, such as a server by its `Retry-After`, and what to do about
/// it. Used with [`Retry::hinted`](crate::Retry::hinted).
///
/// A hint is never called early: either it is awaited in full, or the operation is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// `None` if the operation is to be given up.
    wait: Option<Duration>,
}

impl Hint {
    /// Awaited, however long it is.
    pub const fn awaited(wait: Duration) -> Self {
        Self { wait: Some(wait) }
    }

    /// Awaited if it is not longer than `longest`; otherwise the operation is given up at once.
    pub fn awaited_up_to(longest: Duration, wait: Duration) -> Self {
        Self { wait: (wait <= longest).then_some(wait) }
    }

    /// Lengthened by up to a tenth, uniformly, so that all who got the same hint do not come back at once.
    /// What [`awaited_up_to`](Self::awaited_up_to) compares is the hint as it came.
    ///
    /// ```
    /// use comeback_backoff::{Hint, Xoshiro256PlusPlus, rand_core::SeedableRng};
    /// use std::time::Duration;
    ///
    /// let mut rng = Xoshiro256PlusPlus::seed_from_u64(7); // or rand::rng()
    /// let hint = Hint::awaited(Duration::from_secs(60)).spread(&mut rng);
    /// # let wait = hint.over(Duration::ZERO).unwrap();
    /// # assert!(Duration::from_secs(60) <= wait && wait <= Duration::from_secs(66));
    /// ```
    #[must_use]
    pub fn spread(self, rng: &mut (impl Rng + ?Sized)) -> Self {
        let spread = |wait: Duration| {
            let tenth = u64::try_from((wait / 10).as_nanos()).unwrap_or(u64::MAX);
            wait.saturating_add(Duration::from_nanos(uniform(0..=tenth, rng)))
        };
        Self { wait: self.wait.map(spread) }
    }

    /// The wait where `delay` would be due without a hint: the longer of both. `None` to give up.
    ///
    /// For a loop of your own; [`retry`](crate::retry()) calls it.
    pub fn over(self, delay: Duration) -> Option<Duration> {
        self.wait.map(|wait| wait.max(delay))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use proptest::prelude::*;
    use rand_core::SeedableRng;

    use super::Hint;
    use crate::Xoshiro256PlusPlus;

    proptest! {
        #[test]
        fn a_spread_hint_is_never_early_and_a_tenth_late_at_most(wait: Duration, seed: u64) {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let spread = Hint::awaited(wait).spread(&mut rng).over(Duration::ZERO).unwrap();
            prop_assert!(wait <= spread && spread <= wait.saturating_add(wait / 10));
        }

        #[test]
        fn a_hint_is_awaited_in_full_or_given_up(wait: Duration, longest: Duration, delay: Duration) {
            prop_assert_eq!(Hint::awaited(wait).over(delay), Some(wait.max(delay)));
            let expected = (wait <= longest).then(|| wait.max(delay));
            prop_assert_eq!(Hint::awaited_up_to(longest, wait).over(delay), expected);
        }
    }

    #[test]
    fn a_spread_is_over_the_whole_tenth() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let hint = Hint::awaited(Duration::from_nanos(100));
        let waits: HashSet<u128> =
            (0..1_000).map(|_| hint.spread(&mut rng).over(Duration::ZERO).unwrap().as_nanos()).collect();
        assert_eq!(waits, (100..=110).collect());
    }

    #[test]
    fn what_is_given_up_stays_given_up() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let hint = Hint::awaited_up_to(Duration::ZERO, Duration::from_secs(1));
        assert_eq!(hint.spread(&mut rng).over(Duration::ZERO), None);
    }
}
