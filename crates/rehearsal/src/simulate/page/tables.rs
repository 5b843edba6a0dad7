//! The simulation report's tiles and tables, and sentences on how many events would wait if the target stayed down.

use comeback_operate::durations;
use comeback_operate::numbers::{grouped, rate_text, rounded};
use comeback_timelapse::{InFlight, Scenario, Summary};

use crate::figure::FigureTable;
use crate::flags::{PolicyFlags, variable};
use crate::in_flight::{ONCE_FULL, figures_in_words, pollers_in_words};
use crate::simulate::figures::{COST_HEADER, Figure, costs, figures, strikes, time};
use crate::simulate::page::Tile;
use crate::simulate::page::runs::{Headings, Side, say, setting, table};

pub(super) fn tiles(sides: &[Side]) -> Vec<Tile> {
    let tile = |label, value: fn(&Summary) -> String| Tile {
        label,
        values: sides.iter().map(|side| (side.name.clone(), value(&side.summary))).collect(),
    };
    vec![
        tile("delivered", |summary| {
            format!("{} of {}", grouped(summary.delivered as u64), grouped(summary.events as u64))
        }),
        tile("half delivered after the outage within", |summary| {
            summary.recovery_delay_ms.map_or("-".into(), |delay| time(delay.p50))
        }),
        tile("peak in flight", |summary| {
            format!("{:.1} %", summary.peak_in_flight as f64 / summary.in_flight_limit as f64 * 100.0)
        }),
        tile("total cost", |summary| format!("{:.4} USD", summary.cost_usd)),
    ]
}

pub(super) fn policy(sides: &[Side]) -> FigureTable {
    let labels = PolicyFlags::names().map(variable).collect();
    let caption = "The retry handler's variables";
    table(Headings { caption, labels: "variable", figures: "value" }, labels, sides, |side| {
        PolicyFlags::names().map(|flag| setting((&side.flags, side.policies.stack()), flag)).collect()
    })
}

/// Returns a table of how often each injected fault struck, or `None` if no fault could strike.
pub(super) fn faults(sides: &[Side]) -> Option<FigureTable> {
    let of = |side: &Side| side.summary.faults.as_ref().map(strikes);
    let labels = of(&sides[0])?.into_iter().map(|[what, _]| what).collect();
    let headings = Headings { caption: "How often each fault struck", labels: "faults", figures: "struck" };
    Some(table(headings, labels, sides, |side| {
        of(side).into_iter().flatten().map(|[_, count]| count).collect()
    }))
}

pub(super) fn outcome(sides: &[Side]) -> FigureTable {
    let figures = figures(&sides.iter().map(|side| &side.summary).collect::<Vec<_>>());
    let labels = figures.iter().map(|figure| figure.label.clone()).collect();
    // Percentiles are on separate lines, because a column is narrow.
    let value = |figure: &Figure, side: usize| figure.values[side].replace("   ", "\n");
    let mut columns = (0..).map(|side| figures.iter().map(|figure| value(figure, side)).collect());
    let caption = "Outcome of the events, and what it took";
    table(Headings { caption, labels: "", figures: "this run" }, labels, sides, |_| {
        columns.next().expect("BUG: fewer columns than sides")
    })
}

pub(super) fn cost(sides: &[Side]) -> FigureTable {
    let [what, calls, usd] = COST_HEADER;
    let mut columns =
        vec![(String::new(), costs(&sides[0].summary).into_iter().map(|[what, ..]| what).collect())];
    for side in sides {
        let (counts, prices) = costs(&side.summary).into_iter().map(|[_, count, usd]| (count, usd)).unzip();
        columns.extend([(side.say(calls), counts), (side.say(usd), prices)]);
    }
    FigureTable { caption: format!("{what}; GB-s are GB-seconds of compute"), columns }
}

/// Arrival rates, in events per second, to show in addition to the run's own rate.
const RATES: [f64; 5] = [0.1, 1.0, 10.0, 100.0, 1_000.0];

/// Describes how many events would wait at the run's own arrival rate if the target stayed down.
pub(super) fn in_flight_arithmetic(scenario: &Scenario, sides: &[Side]) -> Vec<String> {
    own_rate(scenario).map(|rate| waiting_at(rate, scenario, sides)).unwrap_or_default()
}

/// Describes how many events would wait if the target stayed down and `rate` events arrived each second.
pub(super) fn waiting_at(rate: f64, scenario: &Scenario, sides: &[Side]) -> Vec<String> {
    let of = |side: &Side| side.schedule.in_flight(rate, scenario.in_flight_limit);
    let down = if has_own_policies(sides) {
        "If every function stayed down under the stack's policy"
    } else {
        "If the target stayed down"
    };
    let how = if own_rate(scenario) == Some(rate) { "as in this run" } else { "at this rate" };
    let assumed = format!("{down}, and events kept arriving {how}:");
    let full = sides.iter().any(|side| of(side).full_after_seconds.is_some());
    std::iter::once(assumed)
        .chain(say(sides, |side| figures_in_words(&of(side))))
        .chain(full.then(|| ONCE_FULL.to_owned()))
        .chain(say(sides, |side| pollers_in_words(of(side).pollers)))
        .collect()
}

/// Returns a table with a row for each arrival rate. It shows the number of waiting events, the number of pollers, and
/// the time until the in-flight limit is reached.
pub(super) fn in_flight_by_rate(scenario: &Scenario, sides: &[Side]) -> FigureTable {
    let own = own_rate(scenario);
    let mut rates: Vec<f64> = RATES.into_iter().chain(own).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let at = |side: &Side, rate| side.schedule.in_flight(rate, scenario.in_flight_limit);
    let is_full = |side| rates.iter().any(|&rate| at(side, rate).full_after_seconds.is_some());
    let has_a_limit = sides.iter().any(is_full);
    let label = |&rate| format!("{}{}", rate_text(rate), if Some(rate) == own { " (this run)" } else { "" });
    let mut columns = vec![("events that fail".to_owned(), rates.iter().map(label).collect())];
    for side in sides {
        let mut column = |what: &str, figure: fn(InFlight) -> String| {
            columns.push((side.say(what), rates.iter().map(|&rate| figure(at(side, rate))).collect()));
        };
        column("events waiting", |in_flight| rounded(in_flight.waiting));
        column("of those, delayed", |in_flight| rounded(in_flight.moves.delayed));
        column("pollers", |in_flight| grouped(in_flight.pollers));
        if has_a_limit {
            let after =
                |in_flight: InFlight| in_flight.full_after_seconds.map_or("never".into(), durations::short);
            column("limit reached after", after);
        }
    }
    let whose = if has_own_policies(sides) { " under the stack's policy" } else { "" };
    let caption = format!(
        "By arrival rate, while the target is down{whose}, when as many events are dead-lettered as arrive"
    );
    FigureTable { caption, columns }
}

fn has_own_policies(sides: &[Side]) -> bool {
    sides.iter().any(|side| !side.policies.entries().is_empty())
}

/// The run's arrival rate, in events per second; `None` if all events arrive at the same moment.
pub(super) fn own_rate(scenario: &Scenario) -> Option<f64> {
    let spread = scenario.arrival_spread.as_secs_f64();
    (spread > 0.0).then(|| scenario.events as f64 / spread)
}
