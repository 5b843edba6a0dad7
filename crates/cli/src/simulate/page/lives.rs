use std::time::Duration;

use comeback_engine::{Outcome, Step};
use comeback_timelapse::{EventNumber, TargetError, Watcher};

/// How many events are watched: the first to arrive, which an outage at the start hits hardest.
const WATCHED: usize = 100;

/// Records what happens to some events, to show the life of one.
#[derive(Debug, Default)]
pub(crate) struct Lives(Vec<Vec<Moment>>);

/// Something that happened to an event, and when: the time since the run's start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) at: Duration,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// An invocation of the target succeeded, or failed with this `errorType`.
    Ran { attempt: u64, error: Option<&'static str> },
    /// The handler hid the message until this retry.
    Hid { retry: u64, visibility_timeout: Duration },
    /// The handler invoked the target again.
    Reinvoked { retry: u64 },
    /// The handler dead-lettered the event instead of making this retry.
    GaveUp { retry: u64, reason: String },
    /// A step failed; the message stays in the queue.
    Kept { retry: u64, problem: String },
}

/// The life that was picked to be shown.
#[derive(Debug, PartialEq)]
pub(super) struct Life {
    pub(super) event: usize,
    pub(super) moments: Vec<Moment>,
}

impl Lives {
    /// The life with the most runs of the target; the first of several. None if nothing arrived.
    pub(super) fn most_eventful(self) -> Option<Life> {
        let runs = |moments: &Vec<Moment>| {
            moments.iter().filter(|moment| matches!(moment.what, What::Ran { .. })).count()
        };
        let lives = self.0.into_iter().enumerate().filter(|(_, moments)| !moments.is_empty());
        let (event, moments) = lives.rev().max_by_key(|(_, moments)| runs(moments))?;
        Some(Life { event, moments })
    }

    fn note(&mut self, at: Duration, event: usize, what: impl FnOnce() -> What) {
        if event >= WATCHED {
            return;
        }
        if self.0.len() <= event {
            self.0.resize_with(event + 1, Vec::new);
        }
        self.0[event].push(Moment { at, what: what() });
    }
}

impl Watcher for Lives {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, error: Option<TargetError>) {
        self.note(at, event.0, || What::Ran { attempt, error: error.map(|error| error.error_type) });
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        self.note(at, event.0, || {
            let retry = outcome.retry.as_ref().map_or(0, |retry| retry.number);
            match (&outcome.problem, &outcome.step) {
                (None, Some(Step::Defer { visibility_timeout, .. })) => {
                    What::Hid { retry, visibility_timeout: *visibility_timeout }
                }
                (None, Some(Step::Reinvoke { .. })) => What::Reinvoked { retry },
                (None, Some(Step::DeadLetter { reason, .. })) => {
                    What::GaveUp { retry, reason: reason.to_string() }
                }
                (problem, _) => What::Kept {
                    retry,
                    problem: problem.as_ref().map_or("not decided".into(), |problem| problem.cause.clone()),
                },
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(lives: &mut Lives, event: usize, attempts: u64) {
        for attempt in 0..attempts {
            lives.invoked(Duration::from_secs(attempt), EventNumber(event), attempt, None);
        }
    }

    #[test]
    fn the_first_of_the_most_eventful_lives_is_shown() {
        let mut lives = Lives::default();
        for (event, attempts) in [(1, 2), (3, 5), (4, 5), (5, 1), (WATCHED, 9)] {
            ran(&mut lives, event, attempts);
        }
        let life = lives.most_eventful().unwrap();
        assert_eq!((life.event, life.moments.len()), (3, 5));
        assert_eq!(Lives::default().most_eventful(), None);
    }
}
