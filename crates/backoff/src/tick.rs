use core::time::Duration;

/// The unit of waits: each is a whole number of ticks. Draws are integers, so nothing is ever rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tick {
    /// For waits inside a process.
    Microsecond,
    /// The default, for waits between processes.
    #[default]
    Millisecond,
    /// For queues and schedulers that count in whole seconds, such as SQS.
    Second,
}

impl Tick {
    /// How long a tick is.
    pub const fn duration(self) -> Duration {
        self.times(1)
    }

    /// This many ticks.
    ///
    /// ```
    /// use comeback_backoff::Tick;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Tick::Second.times(90), Duration::from_secs(90));
    /// ```
    pub const fn times(self, ticks: u64) -> Duration {
        match self {
            Self::Microsecond => Duration::from_micros(ticks),
            Self::Millisecond => Duration::from_millis(ticks),
            Self::Second => Duration::from_secs(ticks),
        }
    }

    /// The number of ticks that are exactly this long; `None` if no whole number below 2⁶⁴ is.
    ///
    /// ```
    /// use comeback_backoff::Tick;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Tick::Millisecond.count(Duration::from_secs(2)), Some(2_000));
    /// assert_eq!(Tick::Second.count(Duration::from_millis(1_500)), None);
    /// ```
    pub fn count(self, duration: Duration) -> Option<u64> {
        let tick = self.duration().as_nanos();
        let nanos = duration.as_nanos();
        if nanos.is_multiple_of(tick) { u64::try_from(nanos / tick).ok() } else { None }
    }

    /// `microsecond`, `millisecond` or `second`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Microsecond => "microsecond",
            Self::Millisecond => "millisecond",
            Self::Second => "second",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Tick;
    use std::time::Duration;

    proptest! {
        #[test]
        fn counts_what_it_multiplied(
            ticks: u64, tick in proptest::sample::select(vec![Tick::Microsecond, Tick::Millisecond, Tick::Second])
        ) {
            prop_assert_eq!(tick.count(tick.times(ticks)), Some(ticks));
        }
    }

    #[test]
    fn over_64_bits_is_no_count() {
        assert_eq!(Tick::Microsecond.count(Duration::from_secs(u64::MAX)), None);
    }
}
