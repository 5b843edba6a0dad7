use comeback_timelapse::{Minute, Scenario};
use indicatif::HumanCount;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::chart::count_axis::{self, CountAxis};
use crate::chart::palette::PURPLE;
use crate::chart::svg::FONT;
use crate::simulate::figures::peak;
use crate::simulate::histogram::{clock, minutes_a_row};
use crate::simulate::page::charts::canvas::{OverTime, TEXT, drawn, frame, shade};
use crate::simulate::page::side::{Side, say};
use crate::simulate::page::template::{Chart, Key, Svg, Table};
use crate::text::durations;
use crate::text::in_flight::{ONCE_FULL, figures_in_words};
use crate::text::numbers::rounded;
use crate::text::rates;

/// Rates shown beside the run's own, in events a second.
const RATES: [f64; 5] = [0.1, 1.0, 10.0, 100.0, 1_000.0];
/// Where the logarithmic axis begins: below one, so that none and one differ.
const FLOOR: f64 = 0.8;

/// How deep the queue was, against its limit.
pub(in crate::simulate::page) fn chart(scenario: &Scenario, sides: &[Side]) -> Chart {
    let time = OverTime::of(&sides[0].summary);
    let key = |side: &Side, symbol, what: &str| {
        let label = if side.name.is_empty() { what.to_owned() } else { format!("{}, {what}", side.name) };
        Key { symbol, colour: side.colour, label }
    };
    let mut keys: Vec<Key> = sides.iter().map(|side| key(side, "━━", "in flight")).collect();
    let full = sides.iter().filter(|side| is_full(side));
    keys.extend(full.map(|side| key(side, "╌╌", "ready, but not handed out")));
    keys.push(Key { symbol: "━━", colour: PURPLE, label: "the limit".into() });
    Chart {
        id: "in-flight",
        heading: "Messages in flight, logarithmic scale".into(),
        description: format!(
            "Against the limit of {}. The table below has its figures.",
            HumanCount(scenario.in_flight_limit as u64)
        ),
        keys,
        svg: draw(scenario, sides, &time),
        table: Some(table(sides)),
    }
}

/// Whether the limit was reached.
fn is_full(side: &Side) -> bool {
    side.summary.peak_in_flight >= side.summary.in_flight_limit
}

/// How close the run came to the limit and, if it reached it, what happened then.
pub(in crate::simulate::page) fn story(side: &Side) -> String {
    let summary = &side.summary;
    let peak = format!("At most {} messages were in flight.", peak(summary));
    if !is_full(side) {
        return peak;
    }
    let full = |minute: &Minute| minute.in_flight as usize >= summary.in_flight_limit;
    let first = summary.minutes.iter().position(full).unwrap_or(0);
    let last = summary.minutes.iter().rposition(full).unwrap_or(0);
    let visible = summary.minutes[first..=last].iter().map(|minute| minute.visible).max().unwrap_or(0);
    format!(
        "{peak} The limit was reached first at {} and last at {}. SQS then hands out a message only when another \
         leaves: up to {} stood ready and were not received, and retries came late or not at all, without an error.",
        clock(first),
        clock(last),
        HumanCount(visible.into())
    )
}

fn draw(scenario: &Scenario, sides: &[Side], time: &OverTime) -> Svg {
    let depths = |side: &Side, depth: fn(&Minute) -> u32| -> Vec<(f64, f64)> {
        let most = |minutes: &[Minute]| f64::from(minutes.iter().map(depth).max().unwrap_or(0)).max(FLOOR);
        time.steps(&side.summary.minutes.chunks(time.step).map(most).collect::<Vec<_>>())
    };
    let limit = scenario.in_flight_limit as f64;
    let most_visible =
        |side: &Side| side.summary.minutes.iter().map(|minute| minute.visible).max().unwrap_or(0);
    let visible = sides.iter().filter(|side| is_full(side)).map(|side| f64::from(most_visible(side)));
    let y = CountAxis::over([1.0, limit].into_iter().chain(visible.collect::<Vec<_>>()), true);
    drawn(|root| {
        let (end, high) = (time.axis().range().end, y.range().end);
        let mut chart =
            frame(root, (time.axis(), y), "time since the start", |count| count_axis::text(*count))?;
        shade(&mut chart, scenario.outage, (FLOOR, high))?;
        for side in sides {
            if is_full(side) {
                let line = depths(side, |minute| minute.visible);
                chart.draw_series(DashedLineSeries::new(line, 6, 4, side.colour.stroke_width(2)))?;
            }
            chart.draw_series([PathElement::new(
                depths(side, |minute| minute.in_flight),
                side.colour.stroke_width(2),
            )])?;
        }
        chart.draw_series([PathElement::new([(0.0, limit), (end, limit)], PURPLE.stroke_width(2))])?;
        let below = (FONT, TEXT).into_text_style(root).color(&PURPLE).pos(Pos::new(HPos::Right, VPos::Top));
        let label = format!("limit {}", HumanCount(scenario.in_flight_limit as u64));
        let (x, y) = chart.backend_coord(&(end, limit));
        root.draw_text(&label, &below, (x - 4, y + 4))?;
        Ok(())
    })
}

fn table(sides: &[Side]) -> Table {
    let step = minutes_a_row(&sides[0].summary);
    let columns = |side: &Side| ["in flight", "visible"].map(|what| side.say(what));
    let row = |from: usize| {
        let figures = sides.iter().flat_map(|side| {
            let minutes = side.summary.minutes[from..].iter().take(step);
            let (in_flight, visible) = minutes.fold((0, 0), |(in_flight, visible), minute| {
                (minute.in_flight.max(in_flight), minute.visible.max(visible))
            });
            [in_flight, visible].map(|depth| HumanCount(depth.into()).to_string())
        });
        std::iter::once(clock(from)).chain(figures).collect()
    };
    Table {
        caption: "Most messages at once: in flight, and visible but not yet received".into(),
        head: std::iter::once("from".to_owned()).chain(sides.iter().flat_map(columns)).collect(),
        rows: (0..sides[0].summary.minutes.len()).step_by(step).map(row).collect(),
    }
}

/// How many messages the run's own rate of arrivals would keep in flight if the target stayed down.
pub(in crate::simulate::page) fn arithmetic(scenario: &Scenario, sides: &[Side]) -> Vec<String> {
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
pub(in crate::simulate::page) fn rates(scenario: &Scenario, sides: &[Side]) -> Table {
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
