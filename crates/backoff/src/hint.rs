//! A wait that an error requests, for example with a `Retry-After` header.

use core::time::Duration;

use rand::{Rng, RngExt};

/// The wait that an error requests, for example with a server's `Retry-After` header. The next call is made no sooner
/// than requested, or not at all. Return a hint from the closure passed to [`Retry::hint`](crate::Retry::hint).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The wait before the next call, or `None` if no further call is made.
    wait: Option<Duration>,
    may_shorten: bool,
}

impl Hint {
    /// Creates a hint that makes the retry wait for the full `wait`, however long it is.
    pub const fn new(wait: Duration) -> Self {
        Self { wait: Some(wait), may_shorten: false }
    }

    /// Reads a `Retry-After` header, or any other string that [`requested_wait`](crate::requested_wait) understands.
    ///
    /// ```
    /// use comeback_backoff::Hint;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
    /// assert_eq!(Hint::retry_after("120", now)?, Hint::new(Duration::from_secs(120)));
    /// assert_eq!(Hint::retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now)?, Hint::new(Duration::from_secs(7)));
    /// # Ok::<(), comeback_backoff::UnreadableWait>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails for any string that [`requested_wait`](crate::requested_wait) does not understand.
    #[cfg(feature = "retry-after")]
    pub fn retry_after(header: &str, now: std::time::SystemTime) -> Result<Self, crate::UnreadableWait> {
        crate::requested_wait(header, now).map(Self::new)
    }

    /// Allows no further call if the requested wait is longer than `longest`.
    #[must_use]
    pub fn up_to(self, longest: Duration) -> Self {
        Self { wait: self.wait.filter(|wait| *wait <= longest), ..self }
    }

    /// Lets the hint replace a longer delay. With a hint of zero, the next call is made immediately.
    ///
    /// ```
    /// use comeback_backoff::Hint;
    /// use std::time::Duration;
    ///
    /// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    /// assert_eq!(Hint::new(second).over(minute), Some(minute));
    /// assert_eq!(Hint::new(second).may_shorten().over(minute), Some(second));
    /// ```
    #[must_use]
    pub fn may_shorten(self) -> Self {
        Self { may_shorten: true, ..self }
    }

    /// Lengthens the wait by up to a tenth, chosen uniformly at random.
    ///
    /// ```
    /// use comeback_backoff::Hint;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let wait = Hint::new(minute).spread(&mut rand::rng()).over(Duration::ZERO);
    /// assert!(wait.is_some_and(|wait| minute <= wait && wait <= minute * 11 / 10));
    /// ```
    #[must_use]
    pub fn spread(self, rng: &mut (impl Rng + ?Sized)) -> Self {
        let longer = |wait: Duration| {
            let tenth = u64::try_from((wait / 10).as_nanos()).unwrap_or(u64::MAX);
            wait.saturating_add(Duration::from_nanos(rng.random_range(0..=tenth)))
        };
        Self { wait: self.wait.map(longer), ..self }
    }

    /// Returns the wait before the next call: the longer of the hint and `delay`, unless the hint [may
    /// shorten](Self::may_shorten) the delay. Returns `None` if the hint forbids another call.
    ///
    /// Call this function in a retry loop of your own; [`retry`](crate::retry()) calls it for you.
    pub fn over(self, delay: Duration) -> Option<Duration> {
        self.wait.map(|wait| if self.may_shorten { wait } else { wait.max(delay) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::Hint;

    proptest! {
        #[test]
        fn spread_adds_at_most_a_tenth(wait: Duration, seed: u64) {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let spread = Hint::new(wait).spread(&mut rng).over(Duration::ZERO).unwrap();
            prop_assert!(wait <= spread && spread <= wait.saturating_add(wait / 10));
        }

        #[test]
        fn hint_is_awaited_in_full_or_given_up(wait: Duration, longest: Duration, delay: Duration) {
            prop_assert_eq!(Hint::new(wait).over(delay), Some(wait.max(delay)));
            let expected = (wait <= longest).then(|| wait.max(delay));
            prop_assert_eq!(Hint::new(wait).up_to(longest).over(delay), expected);
            let expected = (wait <= longest).then_some(wait);
            prop_assert_eq!(Hint::new(wait).may_shorten().up_to(longest).over(delay), expected);
        }
    }

    #[test]
    fn spread_covers_the_whole_tenth() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let hint = Hint::new(Duration::from_nanos(100));
        let waits: HashSet<u128> =
            (0..1_000).map(|_| hint.spread(&mut rng).over(Duration::ZERO).unwrap().as_nanos()).collect();
        assert_eq!(waits, (100..=110).collect());
        assert_eq!(hint.up_to(Duration::ZERO).spread(&mut rng).over(Duration::ZERO), None);
    }
}
