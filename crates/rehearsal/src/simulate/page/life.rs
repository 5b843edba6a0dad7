//! Records what happens to a run's first events, and draws one event's life for the simulation report.

use std::time::Duration;

use comeback_engine::{Outcome, What};
use comeback_operate::durations;
use comeback_timelapse::{EventNumber, Scenario, TargetError, Watcher};

use crate::figure::{Chart, FigureTable, Picture, SIZE};
use crate::life::{self, Mark};

/// Number of events to watch. The first to arrive are watched, because an outage at the start affects them most.
const WATCHED: usize = 100;

/// A watcher that records the lives of a run's first events, so that the report can show one of them.
#[derive(Debug, Default)]
pub struct Lives(Vec<Vec<Moment>>);

/// Something that happened to an event, with the time since the run's start.
#[derive(Clone, Debug, PartialEq)]
struct Moment {
    at: Duration,
    attempt: u64,
    mark: Mark,
    text: String,
}

/// The life of the event that the report shows.
#[derive(Debug, PartialEq)]
pub(super) struct Life {
    event: usize,
    moments: Vec<Moment>,
}

impl Lives {
    /// Returns the life of the event with the most invocations, or of the first such event. Returns `None` if no event
    /// arrived.
    pub(super) fn most_eventful(self) -> Option<Life> {
        let ran = |moment: &&Moment| matches!(moment.mark, Mark::Failed | Mark::Succeeded);
        let runs = |moments: &Vec<Moment>| moments.iter().filter(ran).count();
        let lives = self.0.into_iter().enumerate().filter(|(_, moments)| !moments.is_empty());
        let (event, moments) = lives.rev().max_by_key(|(_, moments)| runs(moments))?;
        Some(Life { event, moments })
    }

    /// Returns the recorded moments of an event; `None` if the event is not watched.
    fn of(&mut self, event: EventNumber) -> Option<&mut Vec<Moment>> {
        let event = event.0;
        if self.0.len() <= event && event < WATCHED {
            self.0.resize_with(event + 1, Vec::new);
        }
        self.0.get_mut(event)
    }
}

impl Watcher for Lives {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, error: Option<TargetError>) {
        let Some(moments) = self.of(event) else { return };
        let (mark, text) = match error {
            Some(error) => (Mark::Failed, format!("attempt {attempt} failed: {}", error.error_type)),
            None => (Mark::Succeeded, format!("attempt {attempt} succeeded")),
        };
        moments.push(Moment { at, attempt, mark, text });
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        let Some(moments) = self.of(event) else { return };
        let attempt = outcome.retry().unwrap_or(0);
        let waits = outcome.visibility_timeout().or(outcome.delay());
        let (mark, text) = match (&outcome.what, waits) {
            (What::Defer { .. }, Some(delay)) => {
                let hidden = durations::text(delay);
                (Mark::Hid, format!("hidden for {hidden} until retry {attempt}"))
            }
            (What::Reinvoke { .. }, _) => (Mark::Other, format!("re-invoked, retry {attempt}")),
            (What::DeadLetter { reason, .. }, _) => (Mark::DeadLettered, format!("dead-lettered: {reason}")),
            (What::Defer { .. } | What::Hold { .. } | What::Keep { .. }, _) => {
                let cause = outcome.problem().map_or("not decided", |problem| &problem.cause);
                (Mark::Other, format!("kept before retry {attempt}: {cause}"))
            }
        };
        moments.push(Moment { at, attempt, mark, text });
    }
}

/// Maximum number of rows, beyond which the table leaves out the middle.
const ROWS: usize = 200;

/// Draws an event's life, beginning with its first failure. Returns `None` if the event never failed.
pub(super) fn chart(scenario: &Scenario, life: &Life) -> Option<Chart> {
    let first_failure = life.moments.iter().find(|moment| moment.mark == Mark::Failed)?.at;
    let last = life.moments.last()?;
    Some(Chart {
        id: "life",
        heading: format!("Event {}, logarithmic time", life.event + 1),
        description: format!(
            "Its first failure came {} after the start. {} later: {}.",
            durations::text(first_failure),
            durations::text(last.at - first_failure),
            last.text
        ),
        keys: life::keys(),
        picture: draw(scenario, life, first_failure),
        table: Some(table(life, first_failure)),
    })
}

fn draw(scenario: &Scenario, life: &Life, first_failure: Duration) -> Picture {
    let since = |at: Duration| at.saturating_sub(first_failure);
    let moments: Vec<_> = life
        .moments
        .iter()
        .map(|moment| life::Moment { since: since(moment.at), attempt: moment.attempt, mark: moment.mark })
        .collect();
    let outage = scenario.longest_outage();
    life::draw(SIZE, &moments, (outage > first_failure).then(|| (since(outage), "the outage ends")))
}

fn table(life: &Life, first_failure: Duration) -> FigureTable {
    let moments = &life.moments;
    let left_out = moments.len().saturating_sub(ROWS);
    let column = |head: &str, more: String, cell: &dyn Fn(&Moment) -> String| {
        let mut cells: Vec<String> = moments.iter().map(cell).collect();
        if left_out > 0 {
            cells.splice(ROWS / 2..ROWS / 2 + left_out, [more]);
        }
        (head.to_owned(), cells)
    };
    let since = |moment: &Moment| durations::text(moment.at.saturating_sub(first_failure));
    FigureTable {
        caption: "What happened to it".into(),
        columns: vec![
            column("what", format!("… {left_out} more …"), &|moment| moment.text.clone()),
            column("since the start", String::new(), &|moment| durations::text(moment.at)),
            column("since the first failure", String::new(), &since),
        ],
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
    fn first_of_the_most_eventful_lives_is_shown() {
        let mut lives = Lives::default();
        for (event, attempts) in [(1, 2), (3, 5), (4, 5), (5, 1), (WATCHED, 9)] {
            ran(&mut lives, event, attempts);
        }
        let life = lives.most_eventful().unwrap();
        assert_eq!((life.event, life.moments.len()), (3, 5));
        assert_eq!(Lives::default().most_eventful(), None);
    }
}
