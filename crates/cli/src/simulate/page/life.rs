//! One event's life: watched during the run, and drawn.

use std::time::Duration;

use comeback_engine::{End, Outcome, Why};
use comeback_timelapse::{EventNumber, Scenario, TargetError, Watcher};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::axis::{CountAxis, TimeAxis};
use crate::chart::{BLUE, GREEN, GREY, MUTED, PURPLE, write};
use crate::figure::{Chart, Key, TEXT, Table, drawn, frame};
use crate::text::durations;

/// Number of events watched: the first to arrive, which an outage at the start hits hardest.
const WATCHED: usize = 100;

/// Records what happens to some events, to show the life of one.
#[derive(Debug, Default)]
pub(crate) struct Lives(Vec<Vec<Moment>>);

/// Something that happened to an event, and when: the time since the run's start.
#[derive(Clone, Debug, PartialEq)]
struct Moment {
    at: Duration,
    /// The attempt that was made, hidden for or given up.
    attempt: u64,
    what: What,
    text: String,
}

/// Marks in the chart.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Failed,
    Succeeded,
    Hid,
    GaveUp,
    /// Only in the table: a re-invocation, or a step that failed and left the message in the queue.
    Other,
}

/// The life that was picked to be shown.
#[derive(Debug, PartialEq)]
pub(super) struct Life {
    event: usize,
    moments: Vec<Moment>,
}

impl Lives {
    /// The life with the most runs of the target; the first of several. None if nothing arrived.
    pub(super) fn most_eventful(self) -> Option<Life> {
        let ran = |moment: &&Moment| matches!(moment.what, What::Failed | What::Succeeded);
        let runs = |moments: &Vec<Moment>| moments.iter().filter(ran).count();
        let lives = self.0.into_iter().enumerate().filter(|(_, moments)| !moments.is_empty());
        let (event, moments) = lives.rev().max_by_key(|(_, moments)| runs(moments))?;
        Some(Life { event, moments })
    }

    /// The moments of an event, if it is watched.
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
        let (what, text) = match error {
            Some(error) => (What::Failed, format!("attempt {attempt} failed: {}", error.error_type)),
            None => (What::Succeeded, format!("attempt {attempt} succeeded")),
        };
        moments.push(Moment { at, attempt, what, text });
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        let Some(moments) = self.of(event) else { return };
        let attempt = outcome.retry().unwrap_or(0);
        let (what, text) = match &outcome.end {
            End::Hidden { why: Why::Deferred { .. }, timeout: delay, failure: None }
            | End::Moved { why: Why::Deferred { .. }, delay, .. } => {
                let hidden = durations::text(*delay);
                (What::Hid, format!("hidden for {hidden} until retry {attempt}"))
            }
            End::Reinvoked { .. } => (What::Other, format!("re-invoked, retry {attempt}")),
            End::DeadLettered { reason, .. } => (What::GaveUp, format!("dead-lettered: {reason}")),
            End::Hidden { .. } | End::Moved { .. } => {
                let cause = outcome.problem().map_or("not decided", |problem| &problem.cause);
                (What::Other, format!("kept before retry {attempt}: {cause}"))
            }
        };
        moments.push(Moment { at, attempt, what, text });
    }
}

/// Where the logarithmic axis begins, in seconds: before the end of the shortest backoff.
const START: f64 = 0.5;
/// More attempts than this have no room of their own.
const ATTEMPTS: f64 = 120.0;
/// A table of more moments leaves out those in the middle.
const ROWS: usize = 200;

/// One event from its first failure on; `None` if it never failed.
pub(super) fn chart(scenario: &Scenario, life: &Life) -> Option<Chart> {
    let first_failure = life.moments.iter().find(|moment| moment.what == What::Failed)?.at;
    let key = |symbol, colour, label: &str| Key { symbol, colour, label: label.into() };
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
        keys: vec![
            key("■", BLUE, "hidden for its backoff"),
            key("✕", GREY, "target failed"),
            key("●", GREEN, "target succeeded"),
            key("▲", PURPLE, "given up"),
        ],
        svg: draw(scenario, life, first_failure),
        table: Some(table(life, first_failure)),
    })
}

fn draw(scenario: &Scenario, life: &Life, first_failure: Duration) -> String {
    let since = |at: Duration| at.saturating_sub(first_failure).as_secs_f64().max(START);
    let end = life.moments.last().map_or(START, |moment| since(moment.at));
    let most = life.moments.iter().map(|moment| moment.attempt).max().unwrap_or(0) as f64;
    let x = TimeAxis::logarithmic(START, end * 1.3);
    let y = CountAxis::Linear((-0.7..most + 0.7).into());
    drawn(|root| {
        let shows_outage =
            scenario.longest_outage() > first_failure && x.shows(since(scenario.longest_outage()));
        let mut chart = frame(root, (x, y), "time since the first failure", "")?;
        if shows_outage {
            let moment = since(scenario.longest_outage());
            let ends = [(moment, -0.7), (moment, most + 0.7)];
            chart.draw_series([PathElement::new(ends, MUTED.stroke_width(1))])?;
            let (x, y) = chart.backend_coord(&ends[0]);
            write(root, "the outage ends", (TEXT, MUTED), (HPos::Right, VPos::Bottom), (x - 5, y - 4))?;
        }
        // Of very many attempts, those are left out that would not be seen.
        let step = (most / ATTEMPTS).ceil().max(1.0) as u64;
        let shown = |moment: &&Moment| moment.attempt.is_multiple_of(step) || moment.attempt as f64 == most;
        let half = 0.3 * step as f64;
        for (moment, next) in life.moments.iter().zip(life.moments.iter().skip(1)) {
            if moment.what == What::Hid && shown(&moment) {
                let row = moment.attempt as f64;
                let corners = [(since(moment.at), row - half), (since(next.at), row + half)];
                chart.draw_series([Rectangle::new(corners, BLUE.mix(0.75).filled())])?;
            }
        }
        let size = if most > 40.0 { 2 } else { 4 };
        for moment in life.moments.iter().filter(shown) {
            let at = (since(moment.at), moment.attempt as f64);
            match moment.what {
                What::Failed => chart.draw_series([Cross::new(at, size, GREY.stroke_width(2))]).map(drop)?,
                What::Succeeded => {
                    chart.draw_series([Circle::new(at, size + 2, GREEN.filled())]).map(drop)?
                }
                What::GaveUp => {
                    chart.draw_series([TriangleMarker::new(at, size + 3, PURPLE.filled())]).map(drop)?
                }
                What::Hid | What::Other => {}
            }
        }
        Ok(())
    })
}

fn table(life: &Life, first_failure: Duration) -> Table {
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
    Table {
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
