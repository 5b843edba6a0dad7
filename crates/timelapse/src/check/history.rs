//! The oracle's record of each message: its waits, its moves, and whether it has been settled (retried, dead-lettered
//! or moved).

use std::collections::HashMap;
use std::time::Duration;

use comeback_engine::Timestamp;
use slab::Slab;
use uuid::Uuid;

use super::pauses::Boundaries;
use crate::aws::agenda::START;
use crate::event::EventNumber;
use crate::faults::records::Flaw;

/// Longest time from an invocation record's timestamp until Lambda sends the record. An older record was not sent by
/// Lambda.
const LATEST_DELIVERY: Duration = Duration::from_secs(24 * 3_600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) event: EventNumber,
    /// Number of the retry; 0 for the event's first invocation, which is not a retry.
    pub(crate) number: u64,
    /// Time at which the event's retries started over. A fault made a moved copy look like a new or redriven message.
    pub(crate) anew: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) attempt: Attempt,
    pub(crate) flaw: Option<Flaw>,
    /// Time of the failure; `None` if the record has no timestamp.
    pub(crate) written: Option<Timestamp>,
    /// The wait that the target requested with `RetryAfter`.
    pub(crate) asked: Option<Duration>,
    pub(crate) error: Option<&'static str>,
}

/// Earliest and latest due time after a wait that the target requested. Jitter extends the wait by up to a tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) earliest: Timestamp,
    pub(crate) latest: Timestamp,
}

impl Origin {
    /// Returns the earliest and the latest due time of a retry requested with `RetryAfter`. The wait counts from
    /// `first_sent` if the record has no timestamp.
    pub(super) fn window(&self, first_sent: Timestamp) -> Option<Window> {
        let asked = self.asked?;
        let earliest = self.written.unwrap_or(first_sent).saturating_add(asked);
        Some(Window { earliest, latest: earliest.saturating_add(asked / 10) })
    }

    /// Returns the [`Origin`] that a handler sees if it treats a moved copy as a new or a redriven message.
    pub(super) fn of_new_message(self, sent: Timestamp) -> Self {
        let Attempt { number, .. } = self.attempt;
        match self.written {
            Some(written) if sent.since(written) > LATEST_DELIVERY => {
                let attempt = Attempt { number: 0, anew: Some(sent), ..self.attempt };
                Self { attempt, asked: None, error: None, ..self }
            }
            None if number == 0 => Self { attempt: Attempt { anew: Some(sent), ..self.attempt }, ..self },
            _ => self,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryKey {
    key: usize,
    pub(super) id: Uuid,
}

/// The checks' data about a message, which the simulated queue stores with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) entry: HistoryKey,
    pub(crate) origin: Origin,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MessageHistory {
    pub(super) id: Uuid,
    /// Earliest time for a re-invocation, given the visibility timeouts that handlers have set.
    pub(super) not_before: Timestamp,
    pub(super) settled: bool,
    /// Earliest time at which the next `Invoke` call for the message is allowed.
    pub(super) no_invoke_before: Timestamp,
    /// True if SQS delivered the message while it was hidden, or if the data about its earlier waits was lost.
    pub(super) duplicated: bool,
    /// True if the message, or an earlier copy, has lost the time at which it was first sent.
    pub(super) forgotten: bool,
    /// Time of the last receive by a handler that neither crashed nor ran out of time for its calls.
    pub(super) seen: Timestamp,
    pub(super) cut: bool,
    /// Number of policy changes in effect in the handler environment that last received the message.
    pub(super) policies: usize,
    pub(super) hops: Hops,
}

impl MessageHistory {
    pub(super) fn new(id: Uuid, now: Timestamp) -> Self {
        Self {
            id,
            not_before: now,
            settled: false,
            no_invoke_before: now,
            duplicated: false,
            forgotten: false,
            seen: now,
            cut: false,
            policies: 0,
            hops: Hops::default(),
        }
    }

    pub(super) fn of_copy(self, id: Uuid, now: Timestamp) -> Self {
        Self { id, settled: false, seen: now, ..self }
    }

    /// Records how many policy changes a handler knows of. A new one may change the message's wait.
    pub(super) fn follow_policies(&mut self, policies: usize) {
        if std::mem::replace(&mut self.policies, policies) != policies {
            self.not_before = START;
            self.hops.excused += 1;
        }
    }

    /// Starts the history over, because a moved copy that has lost its `Comeback` attribute looks like a new message.
    pub(super) fn forget(&mut self, now: Timestamp) {
        *self = Self { duplicated: true, forgotten: true, ..Self::new(self.id, now) };
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hops {
    /// Time at which the handler decided on the first move.
    pub(super) since: Option<Timestamp>,
    pub(super) made: u32,
    /// Number of extra moves, beyond one per 900 s, that are allowed because of a wrong clock or a changed wait.
    pub(super) excused: u32,
    /// Latest end of a wait caused by a pause or a failed call. A moved copy continues this wait.
    pub(super) held_until: Option<Timestamp>,
    /// The [`Boundaries`] known to the last handler that moved the message.
    boundaries: Boundaries,
}

impl Hops {
    /// Records the pause boundaries that the handler knows, and allows one more move if they have changed.
    pub(super) fn follow_boundaries(&mut self, boundaries: Boundaries) {
        if std::mem::replace(&mut self.boundaries, boundaries) != boundaries {
            self.excused += 1;
        }
    }

    pub(super) fn add(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
        self.made += 1;
    }
}

/// The histories of all messages in the queue. Also counts, for each message that may be settled again because of a
/// fault, how often it was settled.
#[derive(Debug, Default)]
pub(super) struct MessageHistories {
    histories: Slab<MessageHistory>,
    /// Messages that may be settled again because of a fault. An entry outlives its message, because a handler may
    /// still be working on it.
    excused: HashMap<Uuid, Excused>,
}

#[derive(Debug, Default)]
struct Excused {
    made: u32,
    excuses: u32,
}

impl MessageHistories {
    pub(super) fn open(&mut self, history: MessageHistory) -> HistoryKey {
        HistoryKey { id: history.id, key: self.histories.insert(history) }
    }

    pub(super) fn close(&mut self, entry: HistoryKey) -> MessageHistory {
        self.histories.remove(entry.key)
    }

    pub(super) fn change(&mut self, entry: HistoryKey, change: impl FnOnce(&mut MessageHistory)) {
        self.get(entry).map(change).unwrap_or_default();
    }

    pub(super) fn get(&mut self, entry: HistoryKey) -> Option<&mut MessageHistory> {
        self.histories.get_mut(entry.key).filter(|history| history.id == entry.id)
    }

    /// Excuses the effect of a fault: the message may be retried, dead-lettered or moved once more.
    pub(super) fn excuse(&mut self, entry: HistoryKey) {
        let settled = self.get(entry).is_some_and(|history| history.settled);
        let unexcused = Excused { made: u32::from(settled), excuses: 0 };
        self.excused.entry(entry.id).or_insert(unexcused).excuses += 1;
    }

    /// Records that a message was settled. Returns how many times it has now been settled, and how many repetitions
    /// are excused by faults.
    pub(super) fn settle(&mut self, entry: HistoryKey) -> (u32, u32) {
        let before = self.get(entry).map(|history| std::mem::replace(&mut history.settled, true));
        match self.excused.get_mut(&entry.id) {
            Some(excused) => {
                excused.made += 1;
                (excused.made, excused.excuses)
            }
            // A message that is gone has been settled.
            None => (1 + u32::from(before != Some(false)), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;
    use crate::aws::draw_id;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(1_000 + seconds)
    }

    fn one() -> (MessageHistories, HistoryKey) {
        let mut histories = MessageHistories::default();
        let entry =
            histories.open(MessageHistory::new(draw_id(&mut Xoshiro256PlusPlus::seed_from_u64(1)), at(0)));
        (histories, entry)
    }

    #[test]
    fn old_record_without_its_attribute_starts_again() {
        let attempt = Attempt { event: EventNumber(0), number: 3, anew: None };
        let asked = Some(Duration::from_secs(60));
        let origin = Origin { attempt, flaw: None, written: Some(at(0)), asked, error: Some("Timeout") };
        let seen = |sent| {
            let Origin { attempt, asked, error, .. } = origin.of_new_message(sent);
            (attempt.number, attempt.anew, asked, error)
        };
        let day = LATEST_DELIVERY.as_secs();
        assert_eq!(seen(at(day)), (3, None, asked, Some("Timeout")), "a new message");
        assert_eq!(seen(at(day + 1)), (0, Some(at(day + 1)), None, None), "a redriven one");
    }

    #[test]
    fn settlings_and_excuses_are_counted() {
        let (mut histories, message) = one();
        assert_eq!(histories.settle(message), (1, 0));
        assert_eq!(histories.settle(message), (2, 0));
        histories.excuse(message);
        assert_eq!(histories.settle(message), (2, 1));
        assert_eq!(histories.settle(message), (3, 1));
    }

    #[test]
    fn an_excuse_may_come_first_and_outlives_the_message() {
        let (mut histories, message) = one();
        histories.excuse(message);
        assert_eq!(histories.settle(message), (1, 1));
        histories.close(message);
        assert_eq!(histories.settle(message), (2, 1));
        assert_eq!(histories.settle(message), (3, 1));
    }

    #[test]
    fn settling_a_deleted_message_needs_an_excuse() {
        let (mut histories, message) = one();
        histories.close(message);
        assert_eq!(histories.settle(message), (2, 0));
    }
}
