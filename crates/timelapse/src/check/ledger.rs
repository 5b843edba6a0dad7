//! Records how each event ended in the simulated world, whatever the handler reports.

use std::collections::BTreeMap;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::event::EventNumber;

// Real faults never multiply events this much. A run that exceeds these limits might never end.

/// Maximum number of invocations and messages that carry one event. All events of a run together may reach it too, or
/// [`MOST_COPIES_OF_EACH`] for each event if that is more.
const MOST_COPIES: u64 = 10_000;
/// Maximum mean number of invocations and messages that carry an event, in a large run.
const MOST_COPIES_OF_EACH: u64 = 50;
/// Maximum number of retries of one event: ten times the highest value that `MAX_RETRIES` accepts.
const MOST_RETRIES: u64 = 100_000;

/// The counts and times for one event. An event's carriers are the invocations and messages that contain it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LedgerEntry {
    pub(super) carriers: u64,
    /// Highest retry number so far.
    pub(crate) attempts: u64,
    retries: u64,
    pub(crate) arrived: Option<Timestamp>,
    pub(super) first_failure: Option<Timestamp>,
    pub(crate) delivered: Option<Timestamp>,
    pub(super) dead_lettered: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) lives: Vec<LedgerEntry>,
    pub(crate) faults: FaultCounts,
    carriers: u64,
    /// The event with too many copies or retries, and the exceeded limit. The event is `None` if all events together
    /// have too many copies.
    pub(crate) multiplied: Option<(Option<EventNumber>, u64)>,
}

/// Counts of the faults that occurred in a run, and of the duplicates that they caused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// Number of times that each of the run's faults struck, by the fault's name; 0 for a fault that never struck.
    pub struck: BTreeMap<&'static str, u64>,
    /// Number of re-invocations for messages that had already been retried or dead-lettered.
    pub duplicate_retries: u64,
    /// Number of dead-letters for messages that had already been retried or dead-lettered.
    pub duplicate_dead_letters: u64,
    /// Number of moves of messages that had already been retried, dead-lettered or moved.
    pub duplicate_moves: u64,
}

impl Ledger {
    pub(crate) fn new(events: usize) -> Self {
        let (lives, faults) = (vec![LedgerEntry::default(); events], FaultCounts::default());
        Self { lives, faults, carriers: 0, multiplied: None }
    }

    pub(super) fn life(&mut self, event: EventNumber) -> &mut LedgerEntry {
        &mut self.lives[event.0]
    }

    pub(super) fn carry(&mut self, event: EventNumber) -> &mut LedgerEntry {
        let most_of_all = MOST_COPIES.max(self.lives.len() as u64 * MOST_COPIES_OF_EACH);
        let life = &mut self.lives[event.0];
        life.carriers += 1;
        self.carriers += 1;
        if life.carriers > MOST_COPIES {
            self.multiplied = Some((Some(event), MOST_COPIES));
        } else if self.carriers > most_of_all {
            self.multiplied = Some((None, most_of_all));
        }
        life
    }

    pub(super) fn drop_carrier(&mut self, event: EventNumber) -> &LedgerEntry {
        self.carriers -= 1;
        let life = &mut self.lives[event.0];
        life.carriers = life.carriers.checked_sub(1).expect("BUG: a carrier was dropped twice");
        life
    }

    /// Records a retry with this attempt number, and keeps the highest number. A retry of a duplicate message may
    /// be recorded later with a lower number.
    pub(super) fn attempt(&mut self, event: EventNumber, attempt: u64) {
        let life = self.carry(event);
        life.attempts = life.attempts.max(attempt);
        life.retries += 1;
        if life.retries > MOST_RETRIES {
            self.multiplied = Some((Some(event), MOST_RETRIES));
        }
    }
}

pub(crate) enum EventOutcome {
    Delivered,
    Waiting,
    NotArrived,
    DeadLettered(&'static str),
}

impl LedgerEntry {
    /// Returns the event's outcome or present state, or `None` if the event has vanished.
    pub(crate) fn end(&self) -> Option<EventOutcome> {
        match (self.delivered, self.dead_lettered) {
            (Some(_), _) => Some(EventOutcome::Delivered),
            (None, _) if self.carriers > 0 => Some(EventOutcome::Waiting),
            (None, _) if self.arrived.is_none() => Some(EventOutcome::NotArrived),
            (None, reason) => reason.map(EventOutcome::DeadLettered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Invariant;
    use super::super::invariants::none_vanishes;
    use super::*;
    use crate::figures::TargetFigures;
    use crate::scenario::Scenario;

    const EVENT: EventNumber = EventNumber(0);

    fn figures(ledger: &Ledger) -> TargetFigures {
        TargetFigures::of(&Scenario::default(), ledger, |_| true).0
    }

    fn carried_twice() -> Ledger {
        let mut ledger = Ledger::new(1);
        ledger.carry(EVENT).arrived = Some(Timestamp::from_secs(1));
        ledger.carry(EVENT);
        ledger
    }

    #[test]
    fn counts_each_event_once() {
        let mut ledger = carried_twice();
        ledger.life(EVENT).dead_lettered = Some("max_age");
        ledger.drop_carrier(EVENT);
        assert_eq!(figures(&ledger).waiting, 1);
        ledger.drop_carrier(EVENT);
        assert_eq!(figures(&ledger).dead_lettered, BTreeMap::from([("max_age", 1)]));
        ledger.life(EVENT).delivered = Some(Timestamp::from_secs(2));
        let counted = figures(&ledger);
        assert_eq!((counted.events, counted.delivered, counted.dead_lettered.len()), (1, 1, 0));
        assert_eq!((counted.waiting, counted.not_arrived), (0, 0));
    }

    #[test]
    fn a_vanished_event_is_noticed() {
        let mut ledger = carried_twice();
        assert_eq!(none_vanishes(EVENT, ledger.drop_carrier(EVENT)), Ok(()));
        let broken = none_vanishes(EVENT, ledger.drop_carrier(EVENT)).unwrap_err();
        assert_eq!((broken.invariant, broken.event), (Invariant::NoneVanishes, Some(EVENT)));
    }

    #[test]
    fn longest_chain_counts() {
        let mut ledger = carried_twice();
        [1, 2, 1].into_iter().for_each(|attempt| ledger.attempt(EVENT, attempt));
        assert_eq!(figures(&ledger).attempts.map(|attempts| attempts.max), Some(2));
    }
}
