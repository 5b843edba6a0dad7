//! The faults to inject into a run, each with its rate and its time window.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::ops::Range;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use siphasher::sip::SipHasher13;

use super::fault::Fault;

/// A fault's rate, and the time window in which it can strike.
#[derive(Clone, Debug, PartialEq)]
pub struct Strikes {
    /// Share of the messages, calls or batches that the [`Fault`] strikes; 0 to 1.
    pub rate: f64,
    /// Time during which the fault strikes, counted from the run's start.
    pub window: Range<Duration>,
}

impl Strikes {
    /// Returns `Strikes` for a fault that strikes at `rate` throughout the run.
    pub const fn always(rate: f64) -> Self {
        Self { rate, window: Duration::ZERO..Duration::MAX }
    }

    pub(crate) fn is_valid(&self) -> bool {
        (0.0..=1.0).contains(&self.rate) && !self.window.is_empty()
    }
}

/// The faults to inject into a run; none by default.
///
/// ```
/// use comeback_timelapse::{Fault, Faults, Strikes};
///
/// let faults = Faults::default().with(Fault::InvokeThrottled, Strikes::always(0.1));
/// assert_eq!(faults.iter().count(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults(BTreeMap<Fault, Strikes>);

/// The faults from which [`Faults::storm`] chooses: one from each list.
const STORM: [&[Fault]; 5] = [
    &[Fault::VisibilityRefused, Fault::VisibilityLost],
    &[Fault::InvokeThrottled, Fault::InvokeTimedOut, Fault::InvokeAnswerLost],
    &[Fault::DeadLetterRefused, Fault::DeadLetterLost],
    &[Fault::HandlerDiedAfter, Fault::HandlerTimedOut, Fault::HandlerDiedBefore],
    &[Fault::MoveRefused, Fault::MoveThrottled, Fault::MoveLost, Fault::HandlerDiedAfterMove],
];

impl Faults {
    /// Adds a fault, or changes its rate and window.
    #[must_use]
    pub fn with(mut self, fault: Fault, strikes: Strikes) -> Self {
        self.0.insert(fault, strikes);
        self
    }

    /// Returns every fault except [`Fault::RetentionEnded`]. [`Fault::HandlerOutage`] and [`Fault::InFlightLimit`]
    /// strike at every opportunity, but only in a window early in the run.
    pub fn chaos(seed: u64, duration: Duration) -> Self {
        let steady = Fault::ALL.into_iter().filter(|fault| fault.row().0 > 0.0);
        let mut faults = Self(steady.map(|fault| (fault, Strikes::always(fault.row().0))).collect());
        for (fault, longest) in [(Fault::HandlerOutage, duration / 12), (Fault::InFlightLimit, duration / 24)]
        {
            // The window has its own generator, so that it does not change the rolls of the fault's dice.
            let mut rng = generator(seed, fault.name(), "window");
            let length = longest.mul_f64(rng.random_range(0.5..1.0));
            let start = duration.mul_f64(rng.random_range(0.0..0.125));
            let window = start..start + length.max(Duration::from_millis(1));
            faults.0.insert(fault, Strikes { rate: 1.0, window });
        }
        faults
    }

    /// Returns one blackout for each kind of call, and one for whole batches. During a blackout, every such call or
    /// batch fails. Each blackout starts in the first eighth of the run and lasts for 1 to 60 minutes.
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

    /// Returns each fault that can strike, with its rate and window.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, &Strikes)> {
        self.0.iter().map(|(&fault, strikes)| (fault, strikes))
    }
}

/// Returns a random number generator seeded from the run's seed, a fault's name and a purpose. A fault's name must not
/// contain a colon, which separates it from the purpose.
pub(crate) fn generator(seed: u64, fault: &str, purpose: &str) -> Xoshiro256PlusPlus {
    seeded([&seed.to_le_bytes(), fault.as_bytes(), b":", purpose.as_bytes()])
}

pub(crate) fn seeded<const N: usize>(parts: [&[u8]; N]) -> Xoshiro256PlusPlus {
    let mut hasher = SipHasher13::new();
    parts.into_iter().for_each(|part| hasher.write(part));
    Xoshiro256PlusPlus::seed_from_u64(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn chaos_has_every_fault_except_ended_retention() {
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
    fn storm_blacks_out_each_call_and_the_handlers_end() {
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
    fn nonsensical_strikes_are_invalid() {
        assert!(Strikes::always(1.0).is_valid());
        assert!(!Strikes::always(1.1).is_valid() && !Strikes::always(f64::NAN).is_valid());
        let hour = Duration::from_secs(3_600);
        assert!(!Strikes { rate: 0.5, window: hour..hour }.is_valid());
    }
}
