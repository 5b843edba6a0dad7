//! How often messages were moved, and how often they may be.

use std::time::Duration;

use comeback_engine::Timestamp;

/// The longest delay. Source: SQS quotas, "Message delay".
const LONGEST_DELAY: Duration = Duration::from_secs(900);

/// The moves of a message, the first of them and those that follow it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hops {
    /// When the handler decided on the first.
    since: Option<Timestamp>,
    made: u32,
    /// Moves beyond those that the time since then explains: a look that came early, by any clock, or the
    /// end of one wait and the beginning of another.
    excused: u32,
    /// The latest end of a wait after a failed step, or of a hold, which the copies carry.
    pub(crate) held_until: Option<Timestamp>,
    /// How many beginnings and ends of pauses the last handler that moved it knew.
    pauses: usize,
}

impl Hops {
    /// One move more is explained.
    pub(crate) fn excuse(&mut self) {
        self.excused += 1;
    }

    /// The handler knows so many beginnings and ends of pauses. If others than the last, its wait may be another.
    pub(crate) fn know_pauses(&mut self, changes: usize) {
        if std::mem::replace(&mut self.pauses, changes) != changes {
            self.excuse();
        }
    }

    /// The hops after one more, which the handler decides on at `now`.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn after(mut self, now: Timestamp, delay: Duration) -> Result<Self, String> {
        if !(Duration::from_secs(1)..=LONGEST_DELAY).contains(&delay) || delay.subsec_nanos() > 0 {
            return Err(format!("moved with a delay of {delay:?}; SQS takes 1 to 900 whole seconds"));
        }
        let since = *self.since.get_or_insert(now);
        self.made += 1;
        let waited = now.saturating_add(delay).since(since);
        let longest = LONGEST_DELAY.as_millis();
        let most = waited.as_millis().div_ceil(longest).max(1) + u128::from(self.excused);
        if u128::from(self.made) > most {
            let (made, waited) = (self.made, waited.as_secs());
            return Err(format!("moved {made} times in {waited} s; {most} times would do"));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(1_000 + seconds)
    }

    #[test]
    fn a_wait_takes_as_many_hops_as_delays_fit_in() {
        let seconds = Duration::from_secs;
        let one = Hops::default().after(at(0), seconds(451)).unwrap();
        let two = one.after(at(451), seconds(450)).unwrap();
        let error = one.after(at(451), seconds(449)).unwrap_err();
        assert_eq!(error, "moved 2 times in 900 s; 1 times would do");
        let mut excused = one;
        excused.excuse();
        assert!(excused.after(at(451), seconds(1)).is_ok());
        assert!(two.after(at(902), seconds(900)).is_ok());
    }

    #[test]
    fn sqs_takes_whole_seconds_up_to_900() {
        for refused in [0, 1_500, 901_000].map(Duration::from_millis) {
            assert!(Hops::default().after(at(0), refused).is_err(), "{refused:?}");
        }
        assert!(Hops::default().after(at(0), Duration::from_secs(900)).is_ok());
    }
}
