//! Recent failures, retries and dead-letters of each function, counted from the handler's log in steps of five minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{LogLine, LoggedEvent, MessageState, Timestamp, What};
use serde::Serialize;

/// The length of a [`Step`].
pub const STEP: Duration = Duration::from_secs(300);
/// The most functions to count for. A message may name any function, so that there may be very many.
const MOST_FUNCTIONS: usize = 1_000;

/// The messages of one function within one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Failed events that came to the retry queue, including redriven ones.
    pub failed: u64,
    /// Events that were re-invoked.
    pub retried: u64,
    /// Events that were dead-lettered.
    pub dead_lettered: u64,
}

impl Step {
    fn add(&mut self, other: Self) {
        self.failed += other.failed;
        self.retried += other.retried;
        self.dead_lettered += other.dead_lettered;
    }

    /// The sum of these steps.
    pub fn sum<'s>(steps: impl IntoIterator<Item = &'s Self>) -> Self {
        steps.into_iter().fold(Self::default(), |mut sum, step| {
            sum.add(*step);
            sum
        })
    }
}

/// The failures, retries and dead-letters of each function, counted from the handler's log: by ARN, then by the number of the
/// step since 1970. Lines may come in any order, and more than once.
#[derive(Debug, Default)]
pub(super) struct Recent(pub(super) BTreeMap<Box<str>, BTreeMap<u64, Step>>);

impl Recent {
    /// Counts a line. `before` is the state of its message according to all lines before it.
    pub(super) fn take(
        &mut self,
        line: &LogLine<'_>,
        event: &LoggedEvent<'_>,
        before: Option<MessageState<'_>>,
    ) {
        let step = match (before, &line.what) {
            (Some(MessageState::Settled), _) => return,
            (before, What::Reinvoke { .. }) => {
                Step { failed: u64::from(before.is_none()), retried: 1, dead_lettered: 0 }
            }
            (before, What::DeadLetter { .. }) => {
                Step { failed: u64::from(before.is_none()), retried: 0, dead_lettered: 1 }
            }
            (Some(MessageState::Waiting(_)), _) => return,
            (None, _) => Step { failed: 1, ..Step::default() },
        };
        if self.0.len() >= MOST_FUNCTIONS && !self.0.contains_key(&*event.target) {
            return;
        }
        let steps = self.0.entry(event.target.as_ref().into()).or_default();
        steps.entry(number(line.timestamp)).or_default().add(step);
    }

    /// The functions with a step.
    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(AsRef::as_ref)
    }

    /// Drops all steps that ended before `since`.
    pub(super) fn forget_before(&mut self, since: Timestamp) {
        for steps in self.0.values_mut() {
            *steps = steps.split_off(&number(since));
        }
        self.0.retain(|_, steps| !steps.is_empty());
    }
}

/// The number of the step that a time is in.
pub(super) fn number(at: Timestamp) -> u64 {
    at.as_secs() / STEP.as_secs()
}
