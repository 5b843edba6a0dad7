use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use rand::RngExt;

use super::fault::Fault;
use super::generator::generator;

/// How often a fault strikes, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Strikes {
    /// Of the messages, calls or batches that the [`Fault`] names, the share that it strikes; 0 to 1.
    pub rate: f64,
    /// It strikes only here, counted from the run's start.
    pub window: Range<Duration>,
}

impl Strikes {
    /// Through the whole run.
    pub const fn always(rate: f64) -> Self {
        Self { rate, window: Duration::ZERO..Duration::MAX }
    }

    pub(crate) fn is_valid(&self) -> bool {
        (0.0..=1.0).contains(&self.rate) && !self.window.is_empty()
    }
}

/// The faults of a run. The default is none.
///
/// ```
/// use comeback_timelapse::{Fault, Faults, Strikes};
///
/// let faults = Faults::default().with(Fault::InvokeThrottled, Strikes::always(0.1));
/// assert_eq!(faults.iter().count(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults(BTreeMap<Fault, Strikes>);

/// The mix of [`Faults::chaos`], through the whole run. Rates are high enough for each fault to
/// strike dozens of times in a run of 2,000 events, and low enough for most events to be delivered.
const CHAOS: [(Fault, f64); 37] = [
    (Fault::DuplicateDelivery, 0.01),
    (Fault::StaleReceiptHandle, 0.005),
    (Fault::ReceiveCountHigh, 0.01),
    (Fault::ReceiveCountLow, 0.01),
    // A call that fails for a moment is made up to three times more; now and then all of them fail.
    (Fault::VisibilityRefused, 0.15),
    (Fault::VisibilityLost, 0.05),
    (Fault::VisibilityHalfRefused, 0.15),
    (Fault::InvokeThrottled, 0.01),
    (Fault::InvokeTimedOut, 0.005),
    (Fault::InvokeAnswerLost, 0.005),
    (Fault::HandlerDiedBefore, 0.005),
    // It spares most batches, which take only one call.
    (Fault::HandlerDiedBetween, 0.1),
    (Fault::HandlerDiedAfter, 0.005),
    (Fault::HandlerTimedOut, 0.005),
    // These calls are made up to three times more as well, and there are few of them.
    (Fault::DeadLetterRefused, 0.3),
    (Fault::DeadLetterLost, 0.3),
    (Fault::PollerThrottled, 0.01),
    (Fault::ClockSkew, 0.2),
    (Fault::IncompleteMessage, 0.005),
    (Fault::IncompleteRecord, 0.01),
    (Fault::HostileMessage, 0.005),
    (Fault::UnlistedFunction, 0.005),
    (Fault::MoveRefused, 0.02),
    (Fault::MoveThrottled, 0.1),
    (Fault::MoveLost, 0.03),
    (Fault::HandlerDiedAfterMove, 0.01),
    (Fault::DeleteLost, 0.005),
    // There are few looks.
    (Fault::LookFailed, 0.2),
    (Fault::LookStale, 0.2),
    (Fault::AttributeGarbled, 0.005),
    (Fault::AttributeStripped, 0.005),
    (Fault::OldHandler, 0.01),
    (Fault::PausesDenied, 0.05),
    (Fault::PausesThrottled, 0.05),
    (Fault::PausesLate, 0.05),
    (Fault::PausesGarbled, 0.05),
    (Fault::PausesStale, 0.05),
];

/// The ways in which the handler's calls and its end can fail in [`Faults::storm`].
const STORM: [&[Fault]; 5] = [
    &[Fault::VisibilityRefused, Fault::VisibilityLost],
    &[Fault::InvokeThrottled, Fault::InvokeTimedOut, Fault::InvokeAnswerLost],
    &[Fault::DeadLetterRefused, Fault::DeadLetterLost],
    &[Fault::HandlerDiedAfter, Fault::HandlerTimedOut, Fault::HandlerDiedBefore],
    &[Fault::MoveRefused, Fault::MoveThrottled, Fault::MoveLost, Fault::HandlerDiedAfterMove],
];

impl Faults {
    /// The faults, with this one added or changed.
    #[must_use]
    pub fn with(mut self, fault: Fault, strikes: Strikes) -> Self {
        self.0.insert(fault, strikes);
        self
    }

    /// Every fault but the end of retention. Most strike now and then through the whole run. The
    /// handler is down once, and the in-flight limit is reached once; both begin in the first eighth of
    /// the run. In 24 hours that is within the first three: the handler is down for one to two hours,
    /// and the limit is reached for half an hour to one hour.
    pub fn chaos(seed: u64, duration: Duration) -> Self {
        let mut faults = Self(CHAOS.map(|(fault, rate)| (fault, Strikes::always(rate))).into());
        for (fault, longest) in [(Fault::HandlerOutage, duration / 12), (Fault::InFlightLimit, duration / 24)]
        {
            // A generator of its own, so that the fault's dice roll the same with and without a window.
            let mut rng = generator(seed, fault.name(), "window");
            let length = longest.mul_f64(rng.random_range(0.5..1.0));
            let start = duration.mul_f64(rng.random_range(0.0..0.125));
            let window = start..start + length.max(Duration::from_millis(1));
            faults.0.insert(fault, Strikes { rate: 1.0, window });
        }
        faults
    }

    /// Full blackouts: each call of the handler, and its end, fails every time for 1 to 60 minutes, in
    /// one of its ways. Each begins in the first eighth of the run.
    pub fn storm(seed: u64, duration: Duration) -> Self {
        let mut faults = Self::default();
        for ways in STORM {
            let mut rng = generator(seed, ways[0].name(), "storm");
            let fault = ways[rng.random_range(0..ways.len())];
            let length = Duration::from_secs(rng.random_range(60..=3_600));
            let start = duration.mul_f64(rng.random_range(0.0..0.125));
            faults.0.insert(fault, Strikes { rate: 1.0, window: start..start + length });
        }
        faults
    }

    /// Each fault that may strike.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, &Strikes)> {
        self.0.iter().map(|(&fault, strikes)| (fault, strikes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn chaos_is_every_fault_but_the_end_of_retention() {
        let chaos: Vec<Fault> = Faults::chaos(1, DAY).iter().map(|(fault, _)| fault).collect();
        let all = Fault::ALL.into_iter().filter(|&fault| fault != Fault::RetentionEnded);
        assert_eq!(chaos, all.collect::<Vec<_>>());
        assert!(Faults::chaos(1, DAY).iter().all(|(_, strikes)| strikes.is_valid()));
        assert!(Faults::chaos(1, Duration::ZERO).iter().all(|(_, strikes)| strikes.is_valid()));
    }

    #[test]
    fn an_outage_of_hours_moves_with_the_seed() {
        let outage = |seed| Faults::chaos(seed, DAY).0[&Fault::HandlerOutage].window.clone();
        assert_ne!(outage(1), outage(2));
        for seed in 0..200 {
            let Range { start, end } = outage(seed);
            assert!(start < DAY / 8 && (3_600..=2 * 3_600).contains(&(end - start).as_secs()), "{seed}");
        }
    }

    #[test]
    fn a_storm_is_a_blackout_of_each_call_and_of_the_handlers_end() {
        let mut lengths = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let storm = Faults::storm(seed, DAY);
            assert_eq!(storm.iter().count(), 5, "{seed}");
            for (fault, Strikes { rate, window }) in storm.iter() {
                assert!(*rate == 1.0 && window.start < DAY / 8, "{seed}");
                lengths.push((window.end - window.start).as_secs());
                seen.insert(fault);
            }
        }
        let mean = lengths.iter().sum::<u64>() / lengths.len() as u64;
        assert!((1_700..1_960).contains(&mean), "{mean} s on average");
        assert!(lengths.iter().all(|secs| (60..=3_600).contains(secs)));
        assert!(seen.iter().copied().eq(Fault::ALL.into_iter().filter(|it| STORM.concat().contains(it))));
    }

    #[test]
    fn strikes_that_make_no_sense_are_invalid() {
        assert!(Strikes::always(1.0).is_valid());
        assert!(!Strikes::always(1.1).is_valid() && !Strikes::always(f64::NAN).is_valid());
        let hour = Duration::from_secs(3_600);
        assert!(!Strikes { rate: 0.5, window: hour..hour }.is_valid());
    }
}
