use std::time::Duration;

use comeback_timelapse::{Minute, Scenario};
use indicatif::HumanCount;
use plotters::prelude::*;

use crate::chart::count_axis::{self, CountAxis};
use crate::simulate::histogram::{clock, minutes_a_row};
use crate::simulate::page::charts::canvas::{OverTime, drawn, frame, shade};
use crate::simulate::page::side::{Side, head, keys, say};
use crate::simulate::page::template::{Chart, Svg, Table};
use crate::text::durations;
use crate::text::numbers::counted;

/// Where a logarithmic axis begins: below one, so that none and one differ.
const FLOOR: f64 = 0.8;

/// Retries over time, linear and logarithmic.
pub(in crate::simulate::page) fn charts(scenario: &Scenario, sides: &[Side]) -> Vec<Chart> {
    let time = OverTime::of(&sides[0].summary);
    let each = minutes(time.step);
    let chart = |id, scale: &str, description: &str, svg, table| Chart {
        id,
        heading: format!("Retries in each {each}, {scale} scale"),
        description: description.into(),
        keys: keys(sides, "━━"),
        svg,
        table,
    };
    vec![
        chart(
            "retries",
            "linear",
            "The table below has its figures.",
            draw(scenario, sides, &time, false),
            Some(table(sides)),
        ),
        chart(
            "retries-logarithmic",
            "logarithmic",
            "The same figures.",
            draw(scenario, sides, &time, true),
            None,
        ),
    ]
}

/// How many retries each policy made, and when it made the most.
pub(in crate::simulate::page) fn stories(sides: &[Side]) -> Vec<String> {
    let time = OverTime::of(&sides[0].summary);
    say(sides, |side| most(side, time.step))
}

fn counts(side: &Side, step: usize) -> Vec<f64> {
    let sum = |minutes: &[Minute]| minutes.iter().map(|minute| f64::from(minute.retries)).sum();
    side.summary.minutes.chunks(step).map(sum).collect()
}

fn most(side: &Side, step: usize) -> String {
    let counts = counts(side, step);
    let most = counts.iter().copied().fold(0.0, f64::max);
    let first = counts.iter().position(|&count| count == most).unwrap_or(0);
    let (all, most) = (counted(side.summary.retries, "retry", "retries"), HumanCount(most as u64));
    format!("{all}; at most {most} in {}, from {} on.", minutes(step), clock(first * step))
}

fn minutes(minutes: usize) -> String {
    durations::text(Duration::from_secs(minutes as u64 * 60))
}

fn draw(scenario: &Scenario, sides: &[Side], time: &OverTime, log: bool) -> Svg {
    let lines: Vec<Vec<f64>> = sides.iter().map(|side| counts(side, time.step)).collect();
    let y = CountAxis::over(lines.iter().flatten().copied().chain([1.0]).map(|count| count.max(1.0)), log);
    let floor = if log { FLOOR } else { 0.0 };
    drawn(|root| {
        let high = y.range().end;
        let mut chart =
            frame(root, (time.axis(), y), "time since the start", |count| count_axis::text(*count))?;
        shade(&mut chart, scenario.outage, (floor, high))?;
        for (side, counts) in sides.iter().zip(&lines) {
            let clamped: Vec<f64> = counts.iter().map(|count| count.max(floor)).collect();
            let corners = time.steps(&clamped);
            let base = [(corners.last().map_or(0.0, |end| end.0), floor), (0.0, floor)];
            let area: Vec<(f64, f64)> = corners.iter().copied().chain(base).collect();
            chart.draw_series([Polygon::new(area, side.colour.mix(0.18).filled())])?;
            chart.draw_series([PathElement::new(corners, side.colour.stroke_width(2))])?;
        }
        Ok(())
    })
}

fn table(sides: &[Side]) -> Table {
    let step = minutes_a_row(&sides[0].summary);
    let counts: Vec<Vec<f64>> = sides.iter().map(|side| counts(side, step)).collect();
    let row = |i: usize| {
        let figures = counts.iter().map(|counts| HumanCount(counts[i] as u64).to_string());
        std::iter::once(clock(i * step)).chain(figures).collect()
    };
    Table {
        caption: format!("Retries in each {}", minutes(step)),
        head: head("from", sides, "retries"),
        rows: (0..counts[0].len()).map(row).collect(),
    }
}
