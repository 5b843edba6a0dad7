//! Counts recent failures, retries, dead-letters and due events from the handler's log, in five-minute periods.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{LogLine, LoggedEvent, MessageState, Timestamp, WaitingMessage, What};

/// The length of the period that an [`EventCounts`] covers.
pub const STEP: Duration = Duration::from_secs(300);
/// The maximum number of functions that are counted. Messages may name any number of functions.
const MOST_FUNCTIONS: usize = 1_000;

/// The counts of one function's events in one five-minute period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Failed events that arrived in the retry queue, including redriven events.
    pub failed: u64,
    /// Events that the handler retried.
    pub retried: u64,
    /// Events that the handler dead-lettered.
    pub dead_lettered: u64,
}

impl EventCounts {
    /// Returns the total counts for several five-minute periods.
    pub fn sum<'s>(steps: impl IntoIterator<Item = &'s Self>) -> Self {
        steps.into_iter().fold(Self::default(), |sum, step| Self {
            failed: sum.failed + step.failed,
            retried: sum.retried + step.retried,
            dead_lettered: sum.dead_lettered + step.dead_lettered,
        })
    }
}

/// The counts of each five-minute period. Log lines may be added in any order, and more than once.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Counts by function ARN, then by the [`number`] of the period.
    pub(super) steps: BTreeMap<Box<str>, BTreeMap<u64, EventCounts>>,
    /// The number of events that were already due when each period started, by the period's [`number`].
    due: BTreeMap<u64, u64>,
}

impl Recent {
    /// Counts a log line. `before` is the message's state according to the lines added earlier.
    pub(super) fn take(
        &mut self,
        line: &LogLine<'_>,
        event: &LoggedEvent<'_>,
        before: Option<MessageState<'_>>,
    ) {
        if let Some(MessageState::Waiting(message)) = before {
            self.take_due(message, line.timestamp);
        }
        let step = match (before, &*line.what) {
            (Some(MessageState::Settled), _) => return,
            (before, What::Reinvoke { .. }) => {
                EventCounts { failed: u64::from(before.is_none()), retried: 1, dead_lettered: 0 }
            }
            (before, What::DeadLetter { .. }) => {
                EventCounts { failed: u64::from(before.is_none()), retried: 0, dead_lettered: 1 }
            }
            (Some(MessageState::Waiting(_)), _) => return,
            (None, _) => EventCounts { failed: 1, ..EventCounts::default() },
        };
        if self.steps.len() >= MOST_FUNCTIONS && !self.steps.contains_key(&*event.target) {
            return;
        }
        let steps = self.steps.entry(event.target.as_ref().into()).or_default();
        let counts = steps.entry(number(line.timestamp)).or_default();
        *counts = EventCounts::sum([&*counts, &step]);
    }

    /// Counts a message as due in every period that starts between its due time and the handler's check.
    fn take_due(&mut self, message: &WaitingMessage, checked: Timestamp) {
        let Some(due) = message.waits_for.end().map(|due| due.max(message.at)) else { return };
        let first_from = |at: Timestamp| at.as_secs().div_ceil(STEP.as_secs());
        for step in first_from(due)..first_from(checked) {
            *self.due.entry(step).or_default() += 1;
        }
    }

    pub(super) fn due_at(&self, step: u64) -> u64 {
        self.due.get(&step).copied().unwrap_or_default()
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        self.steps.keys().map(AsRef::as_ref)
    }

    /// Drops the counts for all five-minute periods that ended before `since`.
    pub(super) fn forget_before(&mut self, since: Timestamp) {
        for steps in self.steps.values_mut() {
            *steps = steps.split_off(&number(since));
        }
        self.steps.retain(|_, steps| !steps.is_empty());
        self.due = self.due.split_off(&number(since));
    }
}

/// Returns the number of the five-minute period that contains `at`, counted from the start of 1970.
pub(super) fn number(at: Timestamp) -> u64 {
    at.as_secs() / STEP.as_secs()
}

/// Returns the time at which the five-minute period with this number begins.
pub(super) fn begin(step: u64) -> Timestamp {
    Timestamp::from_secs(step * STEP.as_secs())
}
