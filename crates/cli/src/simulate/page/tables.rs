//! The page's tiles and tables, and the arithmetic of how many events can wait.

use std::time::Duration;

use comeback_timelapse::{InFlight, Scenario, Summary};
use indicatif::HumanCount;

use crate::flags::{PolicyFlags, variable};
use crate::simulate::figures::{COST_HEADER, costs, figures, strikes};
use crate::simulate::page::runs::{Side, head, say, setting};
use crate::simulate::page::template::{Table, Tile};
use crate::text::durations;
use crate::text::in_flight::{ONCE_FULL, figures_in_words, pollers_in_words};
use crate::text::numbers::{rate_text, rounded};

/// The figures that matter most.
pub(super) fn tiles(sides: &[Side]) -> Vec<Tile> {
    let tile = |label, value: fn(&Summary) -> String| Tile {
        label,
        values: sides.iter().map(|side| (side.name.clone(), value(&side.summary))).collect(),
    };
    vec![
        tile("delivered", |summary| {
            format!("{} of {}", HumanCount(summary.delivered as u64), HumanCount(summary.events as u64))
        }),
        tile("half delivered after the outage within", |summary| {
            let text = |ms| durations::text(Duration::from_millis(ms));
            summary.recovery_delay_ms.map_or("-".into(), |delay| text(delay.p50))
        }),
        tile("peak in flight", |summary| {
            format!("{:.1} %", summary.peak_in_flight as f64 / summary.in_flight_limit as f64 * 100.0)
        }),
        tile("cost of it all", |summary| format!("{:.4} USD", summary.cost_usd)),
    ]
}

/// The handler's variables.
pub(super) fn policy(sides: &[Side]) -> Table {
    let row = |flag: &'static str| {
        std::iter::once(variable(flag))
            .chain(sides.iter().map(|side| setting((&side.flags, &side.policy), flag)))
            .collect()
    };
    Table {
        caption: "The retry handler's variables".into(),
        head: head("variable", sides, "value"),
        rows: PolicyFlags::names().into_iter().map(row).collect(),
    }
}

/// Faults besides the target's failures, if the run had any; the same in every run.
pub(super) fn faults(sides: &[Side]) -> Option<Table> {
    let runs: Vec<_> = sides.iter().filter_map(|side| side.summary.faults.as_ref()).map(strikes).collect();
    let cells = |(row, [what, _]): (usize, &[String; 2])| {
        std::iter::once(what.clone()).chain(runs.iter().map(|run| run[row][1].clone())).collect()
    };
    let rows = runs.first()?.iter().enumerate().map(cells).collect();
    Some(Table { caption: "How often each fault struck".into(), head: head("faults", sides, "struck"), rows })
}

/// Outcome of the events, and what it took.
pub(super) fn outcome(sides: &[Side]) -> Table {
    let figures: Vec<Vec<(String, String)>> = sides
        .iter()
        .map(|side| {
            figures(&side.summary).into_iter().map(|figure| (figure.label, in_lines(&figure.value))).collect()
        })
        .collect();
    let row = |label: &String| {
        // A reason that only another policy gives events up for.
        let value = |figures: &Vec<(String, String)>| {
            figures.iter().find(|(other, _)| other == label).map_or("0".into(), |(_, value)| value.clone())
        };
        std::iter::once(label.clone()).chain(figures.iter().map(value)).collect()
    };
    Table {
        caption: "What became of the events, and what it took".into(),
        head: head("", sides, "this run"),
        rows: labels(&figures).iter().map(row).collect(),
    }
}

/// Puts percentiles below each other, because a column is narrow.
fn in_lines(value: &str) -> String {
    value.replace("   ", "\n")
}

/// Every label once, in an order that keeps the order of each list.
fn labels(figures: &[Vec<(String, String)>]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for figures in figures {
        let mut row = 0;
        for (label, _) in figures {
            match labels.iter().position(|known| known == label) {
                Some(known) => row = known + 1,
                None => {
                    labels.insert(row, label.clone());
                    row += 1;
                }
            }
        }
    }
    labels
}

/// Calls and compute, with their list price.
pub(super) fn cost(sides: &[Side]) -> Table {
    let [what, calls, usd] = COST_HEADER;
    let of_each: Vec<Vec<[String; 3]>> = sides.iter().map(|side| costs(&side.summary)).collect();
    let row = |i: usize| {
        let figures = of_each.iter().flat_map(|costs| costs[i][1..].iter().cloned());
        std::iter::once(of_each[0][i][0].clone()).chain(figures).collect()
    };
    let columns = |side: &Side| [calls, usd].map(|what| side.say(what));
    Table {
        caption: format!("{what}; GB-s are GB-seconds of compute"),
        head: std::iter::once(String::new()).chain(sides.iter().flat_map(columns)).collect(),
        rows: (0..of_each[0].len()).map(row).collect(),
    }
}

/// Rates shown beside the run's own, in events a second.
const RATES: [f64; 5] = [0.1, 1.0, 10.0, 100.0, 1_000.0];

/// How many events would wait at the run's own rate of arrivals if the target stayed down.
pub(super) fn in_flight_arithmetic(scenario: &Scenario, sides: &[Side]) -> Vec<String> {
    let Some(rate) = own_rate(scenario) else { return Vec::new() };
    let of = |side: &Side| side.schedule.in_flight(rate, scenario.in_flight_limit);
    let assumed = "If the target stayed down, and events went on to arrive as in this run:".to_owned();
    let full = sides.iter().any(|side| of(side).full_after_seconds.is_some());
    std::iter::once(assumed)
        .chain(say(sides, |side| figures_in_words(&of(side))))
        .chain(full.then(|| ONCE_FULL.to_owned()))
        .chain(say(sides, |side| pollers_in_words(of(side).pollers)))
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
pub(super) fn in_flight_by_rate(scenario: &Scenario, sides: &[Side]) -> Table {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_both_keep_their_order() {
        let figures =
            |labels: &[&str]| labels.iter().map(|&label| (label.to_owned(), String::new())).collect();
        let both: [Vec<(String, String)>; 2] = [
            figures(&["delivered", "max_age", "waiting"]),
            figures(&["delivered", "a_reason", "max_retries", "waiting", "last"]),
        ];
        assert_eq!(labels(&both), ["delivered", "a_reason", "max_retries", "max_age", "waiting", "last"]);
    }
}
