//! The faults to inject into a run, and the dice that decide when they strike.

pub(crate) mod fault;
pub(crate) mod mix;
pub(crate) mod records;

use std::collections::BTreeMap;

use comeback_engine::Timestamp;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::event::EventNumber;
use fault::Fault;
use mix::{Faults, generator};

/// Decides when each fault strikes, and counts the strikes.
#[derive(Debug)]
pub(crate) struct Dice {
    dice: [Option<Die>; Fault::ALL.len()],
    /// Faults that have struck since the simulation last emptied this list, each with the event that it affected.
    pub(crate) notes: Vec<(Fault, EventNumber)>,
}

#[derive(Debug)]
struct Die {
    rate: f64,
    from: Timestamp,
    until: Timestamp,
    rng: Xoshiro256PlusPlus,
    struck: u64,
}

impl Dice {
    /// Gives each fault its own random number generator, so that adding a fault does not change the others' draws.
    pub(crate) fn new(seed: u64, start: Timestamp, faults: &Faults) -> Self {
        let mut dice = [const { None }; Fault::ALL.len()];
        for (fault, strikes) in faults.iter() {
            dice[fault as usize] = Some(Die {
                rate: strikes.rate,
                from: start.saturating_add(strikes.window.start),
                until: start.saturating_add(strikes.window.end),
                rng: generator(seed, fault.name(), "strikes"),
                struck: 0,
            });
        }
        Self { dice, notes: Vec::new() }
    }

    /// Returns the fault's random number generator if the fault strikes now. The caller must then [note](Self::note)
    /// the strike.
    pub(crate) fn roll(&mut self, fault: Fault, now: Timestamp) -> Option<&mut Xoshiro256PlusPlus> {
        let die = self.dice[fault as usize].as_mut()?;
        let strikes = (die.from..die.until).contains(&now) && die.rng.random_bool(die.rate);
        strikes.then_some(&mut die.rng)
    }

    pub(crate) fn note(&mut self, fault: Fault, events: impl IntoIterator<Item = EventNumber>) {
        self.dice[fault as usize].as_mut().expect("BUG: a fault struck that is off").struck += 1;
        self.notes.extend(events.into_iter().map(|event| (fault, event)));
    }

    pub(crate) fn strikes(
        &mut self,
        fault: Fault,
        now: Timestamp,
        events: impl IntoIterator<Item = EventNumber>,
    ) -> bool {
        let strikes = self.roll(fault, now).is_some();
        if strikes {
            self.note(fault, events);
        }
        strikes
    }

    /// Returns how many times each fault has struck, by the fault's name, or `None` if the run has no faults.
    pub(crate) fn struck(&self) -> Option<BTreeMap<&'static str, u64>> {
        let on = Fault::ALL.iter().zip(&self.dice).filter_map(|(fault, die)| Some((fault, die.as_ref()?)));
        let struck: BTreeMap<_, _> = on.map(|(fault, die)| (fault.name(), die.struck)).collect();
        (!struck.is_empty()).then_some(struck)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::aws::agenda::START;
    use crate::faults::mix::Strikes;

    const HALF: Strikes = Strikes::always(0.5);

    fn rolls(dice: &mut Dice, fault: Fault) -> Vec<bool> {
        (0..64).map(|_| dice.strikes(fault, START, [EventNumber(7)])).collect()
    }

    #[test]
    fn one_more_fault_changes_nothing_else() {
        let one = Faults::default().with(Fault::ClockSkew, HALF);
        let two = one.clone().with(Fault::InvokeThrottled, HALF);
        let (mut one, mut two) = (Dice::new(1, START, &one), Dice::new(1, START, &two));
        let throttled = rolls(&mut two, Fault::InvokeThrottled);
        let skewed = rolls(&mut one, Fault::ClockSkew);
        assert_eq!(skewed, rolls(&mut two, Fault::ClockSkew));
        assert_ne!(skewed, throttled, "and has dice of its own");
        assert_ne!(
            skewed,
            rolls(
                &mut Dice::new(2, START, &Faults::default().with(Fault::ClockSkew, HALF)),
                Fault::ClockSkew
            )
        );
    }

    #[test]
    fn strikes_in_its_window_only_at_its_rate_and_counts() {
        let window = Duration::from_secs(10)..Duration::from_secs(20);
        let faults = Faults::default().with(Fault::ClockSkew, Strikes { rate: 1.0, window });
        let mut dice = Dice::new(1, START, &faults);
        let at = |millis| START.saturating_add(Duration::from_millis(millis));
        let struck = [9_999, 10_000, 19_999, 20_000]
            .map(|ms| dice.strikes(Fault::ClockSkew, at(ms), [3, 4].map(EventNumber)));
        assert_eq!(struck, [false, true, true, false]);
        assert_eq!(dice.struck(), Some([("clock_skew", 2)].into()));
        assert_eq!(dice.notes, [3, 4, 3, 4].map(|event| (Fault::ClockSkew, EventNumber(event))));
        let mut dice = Dice::new(1, START, &Faults::default().with(Fault::ClockSkew, HALF));
        let share = rolls(&mut dice, Fault::ClockSkew).iter().filter(|&&struck| struck).count();
        assert!((20..=44).contains(&share), "{share} of 64");
    }
}
