//! How many events can wait, and when the queue would be full: arithmetic, not the run's figures.

use comeback_timelapse::{InFlight, Scenario};
use indicatif::HumanCount;

use crate::simulate::page::side::{Side, say};
use crate::simulate::page::template::Table;
use crate::text::durations;
use crate::text::in_flight::{ONCE_FULL, figures_in_words, pollers_in_words};
use crate::text::numbers::{rate_text, rounded};

/// Rates shown beside the run's own, in events a second.
const RATES: [f64; 5] = [0.1, 1.0, 10.0, 100.0, 1_000.0];

/// How many events would wait at the run's own rate of arrivals if the target stayed down.
pub(super) fn arithmetic(scenario: &Scenario, sides: &[Side]) -> Vec<String> {
    let Some(rate) = own_rate(scenario) else { return Vec::new() };
    let of = |side: &Side| side.schedule.in_flight(rate, scenario.in_flight_limit);
    let assumed = "If the target stayed down, and events went on to arrive as in this run:".to_owned();
    let full = sides.iter().any(|side| of(side).full_after_seconds.is_some());
    std::iter::once(assumed)
        .chain(say(sides, |side| figures_in_words(&of(side))))
        .chain(full.then(|| ONCE_FULL.to_owned()))
        .chain(say(sides, |side| pollers_in_words(&of(side))))
        .collect()
}

/// A figure of each rate of arrivals.
type Column = (&'static str, fn(&InFlight) -> String);

const COLUMNS: [Column; 3] = [
    ("events waiting", |in_flight| rounded(in_flight.waiting)),
    ("of those, delayed", |in_flight| rounded(in_flight.moves.delayed)),
    ("pollers", |in_flight| HumanCount(in_flight.pollers).to_string()),
];
const FULL_AFTER: Column = ("limit reached after", |in_flight| {
    in_flight.full_after_seconds.map_or("never".into(), durations::short)
});

/// For each rate of arrivals how many events wait and what that takes; and, where there is one, when it
/// reaches the limit.
pub(super) fn rates(scenario: &Scenario, sides: &[Side]) -> Table {
    let own = own_rate(scenario);
    let mut rates: Vec<f64> = RATES.into_iter().chain(own).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let at = |rate: f64| -> Vec<InFlight> {
        sides.iter().map(|side| side.schedule.in_flight(rate, scenario.in_flight_limit)).collect()
    };
    let has_a_limit = rates.iter().any(|&rate| at(rate).iter().any(|side| side.full_after_seconds.is_some()));
    let columns: Vec<Column> = COLUMNS.into_iter().chain(has_a_limit.then_some(FULL_AFTER)).collect();
    let row = |rate: f64| {
        let own = if Some(rate) == own { " (this run)" } else { "" };
        let in_flight = at(rate);
        let figures = in_flight.iter().flat_map(|side| columns.iter().map(move |(_, figure)| figure(side)));
        std::iter::once(format!("{}{own}", rate_text(rate))).chain(figures).collect()
    };
    let heads = sides.iter().flat_map(|side| columns.iter().map(move |(what, _)| side.say(what)));
    Table {
        caption: "By arrival rate, while the target is down, when as many events are given up as arrive"
            .into(),
        head: std::iter::once("events that fail".to_owned()).chain(heads).collect(),
        rows: rates.iter().copied().map(row).collect(),
    }
}

/// Events a second; `None` if they all come at once.
pub(super) fn own_rate(scenario: &Scenario) -> Option<f64> {
    let spread = scenario.arrival_spread.as_secs_f64();
    (spread > 0.0).then(|| scenario.events as f64 / spread)
}
