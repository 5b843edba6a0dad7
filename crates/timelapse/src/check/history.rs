//! The oracle's record of each message: its waits, its moves, and whether it has been settled (retried, dead-lettered
//! or moved).

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use comeback_engine::{ReasonCode, Timestamp};

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

impl Origin {
    /// Returns the earliest and the latest due time of a retry requested with `RetryAfter`. The wait counts from
    /// `first_sent` if the record has no timestamp. Jitter extends it by up to a tenth.
    pub(super) fn window(&self, first_sent: Timestamp) -> Option<RangeInclusive<Timestamp>> {
        let asked = self.asked?;
        let earliest = self.written.unwrap_or(first_sent).saturating_add(asked);
        Some(earliest..=earliest.saturating_add(asked / 10))
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

/// The checks' data about a message. The simulated queue and each batch with the message share it, so it lasts while
/// anything can happen to the message.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) history: SharedHistory,
    pub(crate) origin: Origin,
}

pub(crate) type SharedHistory = Rc<RefCell<MessageHistory>>;

/// What has happened to a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageHistory {
    /// Earliest time for a re-invocation, given the visibility timeouts that handlers have set.
    pub(super) not_before: Timestamp,
    /// How often the message was settled.
    pub(super) settled: u32,
    /// How often it may be settled after the first time, because of faults.
    pub(super) excuses: u32,
    /// Earliest time at which the next `Invoke` call for the message is allowed.
    pub(super) no_invoke_before: Timestamp,
    /// True if SQS delivered the message while it was hidden, if the data about its earlier waits was lost, or if the
    /// message is gone.
    pub(super) duplicated: bool,
    /// True if the message is gone, or if it or an earlier copy has lost the time at which it was first sent.
    pub(super) forgotten: bool,
    /// Time of the last receive by a handler that made all its calls: it neither crashed nor timed out.
    pub(super) last_handled: Timestamp,
    /// True if a fault ended its retention period early.
    pub(super) retention_cut: bool,
    /// Number of policy changes in effect in the handler environment that last received the message.
    pub(super) policies: usize,
    pub(super) hops: Hops,
    pub(super) latest: LatestBatch,
}

/// What happened to a message in the latest batch with it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestBatch {
    /// The worst failure that is possible after the handler's calls for the message. `None` if the handler has only
    /// set visibility timeouts.
    pub(super) after: Option<After>,
    /// Time until which the handler has hidden the message; `None` if it has not hidden the message.
    pub(super) hidden_until: Option<Timestamp>,
    /// True if AWS accepted a re-invocation, a dead-letter or a copy of the message, even if the response was lost.
    pub(super) is_settled: bool,
    /// The reason in the message's dead-letter.
    pub(super) reason: Option<ReasonCode>,
}

/// A failed call for a message; worse failures compare as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum After {
    /// A re-invocation failed, or a dead-letter could not be sent.
    Failure,
    /// A re-invocation got no response.
    Unanswered,
    /// A move failed, and its copy may have been accepted.
    LostCopy,
}

impl Carried {
    pub(crate) fn event(&self) -> EventNumber {
        self.origin.attempt.event
    }

    /// Records a duplicate delivery: another receiver already has this message.
    pub(crate) fn duplicate(&self) {
        self.excuse();
        self.history.borrow_mut().duplicated = true;
    }

    /// Allows the message to be settled once more because of a fault.
    pub(crate) fn excuse(&self) {
        self.history.borrow_mut().excuses += 1;
    }

    pub(crate) fn cut_retention(&self) {
        self.history.borrow_mut().retention_cut = true;
    }
}

impl MessageHistory {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            not_before: START,
            settled: 0,
            excuses: 0,
            no_invoke_before: now,
            duplicated: false,
            forgotten: false,
            last_handled: now,
            retention_cut: false,
            policies: 0,
            hops: Hops::default(),
            latest: LatestBatch::default(),
        }
    }

    /// Records the worst failure that is now possible.
    pub(super) fn may_fail(&mut self, after: After) {
        self.latest.after = self.latest.after.max(Some(after));
    }

    /// Forgets the waits of a message that is gone, or of a moved copy that has lost its `Comeback` attribute and so
    /// looks like a new message.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        let Self { settled, excuses, .. } = *self;
        *self = Self { settled, excuses, duplicated: true, forgotten: true, ..Self::new(now) };
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
    pub(super) boundaries: Boundaries,
}

impl Hops {
    pub(super) fn add(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
        self.made += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(1_000 + seconds)
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
}
