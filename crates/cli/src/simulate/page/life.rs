//! One event's life: watched during the run, and drawn.

use std::time::Duration;

use comeback_engine::{Outcome, Step};
use comeback_timelapse::{EventNumber, Scenario, TargetError, Watcher};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::axis::{CountAxis, TimeAxis, count_label};
use crate::chart::{BLUE, Drawing, FONT, GREEN, GREY, MUTED, PURPLE};
use crate::simulate::page::canvas::{Frame, TEXT, drawn, frame};
use crate::simulate::page::template::{Chart, Key, Svg, Table};
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
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
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
    event: usize,
    moments: Vec<Moment>,
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

/// Where the logarithmic axis begins, in seconds: before the end of the shortest backoff.
const START: f64 = 0.5;
/// More attempts than this have no room of their own.
const ATTEMPTS: f64 = 120.0;
/// A table of more moments leaves out those in the middle.
const ROWS: usize = 200;

/// One event from its first failure on; `None` if it never failed.
pub(super) fn chart(scenario: &Scenario, life: &Life) -> Option<Chart> {
    let failed = |moment: &&Moment| matches!(moment.what, What::Ran { error: Some(_), .. });
    let first_failure = life.moments.iter().find(failed)?.at;
    let key = |symbol, colour, label: &str| Key { symbol, colour, label: label.into() };
    let last = life.moments.last()?;
    Some(Chart {
        id: "life",
        heading: format!("Event {}, logarithmic time", life.event + 1),
        description: format!(
            "Its first failure came {} after the start. {} later: {}.",
            durations::text(first_failure),
            durations::text(last.at - first_failure),
            words(&last.what)
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

fn draw(scenario: &Scenario, life: &Life, first_failure: Duration) -> Svg {
    let since = |at: Duration| at.saturating_sub(first_failure).as_secs_f64().max(START);
    let end = life.moments.last().map_or(START, |moment| since(moment.at));
    let most = life.moments.iter().map(|moment| row(&moment.what)).max().unwrap_or(0) as f64;
    let x = TimeAxis::logarithmic(START, end * 1.3);
    let y = CountAxis::Linear((-0.7..most + 0.7).into());
    drawn(|root| {
        let shows_outage = scenario.outage > first_failure && x.shows(since(scenario.outage));
        let mut chart = frame(root, (x, y), "time since the first failure", |row| count_label(*row))?;
        if shows_outage {
            let moment = since(scenario.outage);
            chart.draw_series([PathElement::new(
                [(moment, -0.7), (moment, most + 0.7)],
                MUTED.stroke_width(1),
            )])?;
            let (x, y) = chart.backend_coord(&(moment, -0.7));
            let before =
                (FONT, TEXT).into_text_style(root).color(&MUTED).pos(Pos::new(HPos::Right, VPos::Bottom));
            root.draw_text("the outage ends", &before, (x - 5, y - 4))?;
        }
        // Of very many attempts, those are left out that would not be seen.
        let step = (most / ATTEMPTS).ceil().max(1.0) as u64;
        let shown = |what: &What| row(what).is_multiple_of(step) || row(what) as f64 == most;
        for (moment, next) in life.moments.iter().zip(life.moments.iter().skip(1)) {
            if let What::Hid { retry, .. } = moment.what
                && shown(&moment.what)
            {
                let half = 0.3 * step as f64;
                let corners =
                    [(since(moment.at), retry as f64 - half), (since(next.at), retry as f64 + half)];
                chart.draw_series([Rectangle::new(corners, BLUE.mix(0.75).filled())])?;
            }
        }
        for moment in life.moments.iter().filter(|moment| shown(&moment.what)) {
            mark(&mut chart, &moment.what, since(moment.at), if most > 40.0 { 2 } else { 4 })?;
        }
        Ok(())
    })
}

fn mark(chart: &mut Frame<'_, '_, TimeAxis, CountAxis>, what: &What, at: f64, size: i32) -> Drawing {
    let point = (at, row(what) as f64);
    match what {
        What::Ran { error: Some(_), .. } => {
            chart.draw_series([Cross::new(point, size, GREY.stroke_width(2))])?;
        }
        What::Ran { error: None, .. } => {
            chart.draw_series([Circle::new(point, size + 2, GREEN.filled())])?;
        }
        What::GaveUp { .. } => {
            chart.draw_series([TriangleMarker::new(point, size + 3, PURPLE.filled())])?;
        }
        What::Hid { .. } | What::Reinvoked { .. } | What::Kept { .. } => {}
    }
    Ok(())
}

/// The attempt it is about.
fn row(what: &What) -> u64 {
    match *what {
        What::Ran { attempt, .. } => attempt,
        What::Hid { retry, .. }
        | What::Reinvoked { retry }
        | What::GaveUp { retry, .. }
        | What::Kept { retry, .. } => retry,
    }
}

fn words(what: &What) -> String {
    match what {
        What::Ran { attempt, error: None } => format!("attempt {attempt} succeeded"),
        What::Ran { attempt, error: Some(error) } => format!("attempt {attempt} failed: {error}"),
        What::Hid { retry, visibility_timeout } => {
            format!("hidden for {} until retry {retry}", durations::text(*visibility_timeout))
        }
        What::Reinvoked { retry } => format!("re-invoked, retry {retry}"),
        What::GaveUp { reason, .. } => format!("dead-lettered: {reason}"),
        What::Kept { retry, problem } => format!("kept before retry {retry}: {problem}"),
    }
}

fn table(life: &Life, first_failure: Duration) -> Table {
    let row = |moment: &Moment| {
        let since = durations::text(moment.at.saturating_sub(first_failure));
        vec![words(&moment.what), durations::text(moment.at), since]
    };
    let mut rows: Vec<Vec<String>> = life.moments.iter().map(row).collect();
    if rows.len() > ROWS {
        let left_out = rows.len() - ROWS;
        rows.splice(
            ROWS / 2..ROWS / 2 + left_out,
            [vec![format!("… {left_out} more …"), String::new(), String::new()]],
        );
    }
    Table {
        caption: "What happened to it".into(),
        head: ["what", "since the start", "since the first failure"].map(String::from).into(),
        rows,
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
