//! When the queue would be full: arithmetic, not the run's figures.

use comeback_timelapse::Scenario;

use crate::simulate::page::side::{Side, say};
use crate::simulate::page::template::Table;
use crate::text::durations;
use crate::text::in_flight::{ONCE_FULL, figures_in_words};
use crate::text::numbers::rounded;
use crate::text::rates;

/// Rates shown beside the run's own, in events a second.
const RATES: [f64; 5] = [0.1, 1.0, 10.0, 100.0, 1_000.0];

/// How many messages the run's own rate of arrivals would keep in flight if the target stayed down.
pub(super) fn arithmetic(scenario: &Scenario, sides: &[Side]) -> Vec<String> {
    let Some(rate) = own_rate(scenario) else { return Vec::new() };
    let of = |side: &Side| side.schedule.in_flight(rate, scenario.in_flight_limit);
    let assumed = "If the target stayed down, and events went on to arrive as in this run:".to_owned();
    let full = sides.iter().any(|side| of(side).full_after_seconds.is_some());
    std::iter::once(assumed)
        .chain(say(sides, |side| figures_in_words(&of(side))))
        .chain(full.then(|| ONCE_FULL.to_owned()))
        .collect()
}

/// For each rate of arrivals, when it reaches the limit.
pub(super) fn rates(scenario: &Scenario, sides: &[Side]) -> Table {
    let columns = |side: &Side| ["in flight at once", "limit reached after"].map(|what| side.say(what));
    let row = |rate: f64| {
        let figures = sides.iter().flat_map(|side| {
            let in_flight = side.schedule.in_flight(rate, scenario.in_flight_limit);
            let full_after = in_flight.full_after_seconds.map_or("never".into(), durations::short);
            [rounded(in_flight.in_flight), full_after]
        });
        let own = if Some(rate) == own_rate(scenario) { " (this run)" } else { "" };
        std::iter::once(format!("{}{own}", rates::text(rate))).chain(figures).collect()
    };
    let mut rates: Vec<f64> = RATES.into_iter().chain(own_rate(scenario)).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    Table {
        caption: "By arrival rate, while the target is down: messages in flight if there were no limit"
            .into(),
        head: std::iter::once("events that fail".to_owned()).chain(sides.iter().flat_map(columns)).collect(),
        rows: rates.into_iter().map(row).collect(),
    }
}

/// Events a second; `None` if they all come at once.
fn own_rate(scenario: &Scenario) -> Option<f64> {
    let spread = scenario.arrival_spread.as_secs_f64();
    (spread > 0.0).then(|| scenario.events as f64 / spread)
}
