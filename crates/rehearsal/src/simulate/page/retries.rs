//! Charts of retries over time, and of attempts per event, in the simulation report.

use std::time::Duration;

use comeback_operate::durations;
use comeback_operate::numbers::{counted, grouped, round_step};
use comeback_timelapse::{Minute, Scenario};
use plotters::prelude::*;

use crate::axis::CountAxis;
use crate::chart::{LineStyle, Padding, frame};
use crate::figure::{Chart, FigureTable, Picture, SIZE, Values, drawn, drawn_in};
use crate::simulate::figures::{clock, minutes_a_row, percentiles};
use crate::simulate::page::canvas::{FLOOR, OverTime, shade};
use crate::simulate::page::runs::{Headings, Side, keys, say, table};

/// Draws two charts of the retries over time: one with a linear axis and one with a logarithmic axis.
pub(super) fn charts(scenario: &Scenario, sides: &[Side]) -> [Chart; 2] {
    let logarithmic = Chart {
        id: "retries-logarithmic",
        description: "The same figures.".into(),
        table: None,
        ..chart(scenario, sides, (SIZE, true))
    };
    [chart(scenario, sides, (SIZE, false)), logarithmic]
}

/// Draws the retries over time, with a logarithmic vertical axis if `log` is true.
pub(super) fn chart(scenario: &Scenario, sides: &[Side], (size, log): ((u32, u32), bool)) -> Chart {
    let time = OverTime::of(&sides[0].summary);
    let lines: Vec<RetryCurve> = sides
        .iter()
        .map(|side| RetryCurve { name: &side.name, colour: side.colour, counts: counts(side, time.step) })
        .collect();
    let scale = if log { "logarithmic" } else { "linear" };
    Chart {
        id: "retries",
        heading: format!("Retries in each {}, {scale} scale", minutes(time.step)),
        description: "The table below has its figures.".into(),
        keys: keys(sides, LineStyle::Thick.symbol()),
        picture: draw(scenario, &lines, &time, (size, log)),
        table: Some(figures(sides)),
    }
}

pub(super) fn stories(sides: &[Side]) -> Vec<String> {
    let time = OverTime::of(&sides[0].summary);
    say(sides, |side| {
        let counts = counts(side, time.step);
        let most = counts.iter().copied().fold(0.0, f64::max);
        let first = counts.iter().position(|&count| count == most).unwrap_or(0);
        let (all, most) = (counted(side.summary.retries, "retry", "retries"), grouped(most as u64));
        format!("{all}; at most {most} in {}, starting at {}.", minutes(time.step), clock(first * time.step))
    })
}

fn counts(side: &Side, step: usize) -> Vec<f64> {
    let sum = |minutes: &[Minute]| minutes.iter().map(|minute| f64::from(minute.retries)).sum();
    side.summary.minutes.chunks(step).map(sum).collect()
}

pub(super) fn minutes(minutes: usize) -> String {
    durations::text(Duration::from_secs(minutes as u64 * 60))
}

/// A line in the chart: the number of retries at each point on the time axis.
pub(super) struct RetryCurve<'a> {
    /// The line's name; empty if there is only one line.
    pub(super) name: &'a str,
    pub(super) colour: RGBColor,
    pub(super) counts: Vec<f64>,
}

pub(super) fn draw(
    scenario: &Scenario,
    lines: &[RetryCurve<'_>],
    time: &OverTime,
    (size, log): ((u32, u32), bool),
) -> Picture {
    let heights = lines.iter().flat_map(|line| &line.counts).copied();
    let y = CountAxis::over(heights.chain([1.0]).map(|count| count.max(1.0)), log);
    let floor = if log { FLOOR } else { 0.0 };
    let picture = drawn_in(size, |root| {
        let high = y.range().end;
        let mut chart = frame(root, (time.axis(), "time since the start"), (y, ""), Padding::PAGE)?;
        shade(&mut chart, scenario.longest_outage(), (floor, high))?;
        for RetryCurve { colour, counts, .. } in lines {
            let corners = time.steps(counts.iter().map(|count| count.max(floor)));
            let base = [(corners.last().map_or(0.0, |end| end.0), floor), (0.0, floor)];
            let area: Vec<(f64, f64)> = corners.iter().copied().chain(base).collect();
            chart.draw_series([Polygon::new(area, colour.mix(0.18).filled())])?;
            LineStyle::Thick.draw(&mut chart, corners, *colour)?;
        }
        Ok(())
    });
    let in_words = |point: usize| {
        let line = |RetryCurve { name, counts, .. }: &RetryCurve<'_>| {
            let count = counted(counts[point] as u64, "retry", "retries");
            if name.is_empty() { count } else { format!("{name}: {count}") }
        };
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    picture.with_values(time.values(lines.first().map_or(0, |line| line.counts.len()), in_words))
}

fn figures(sides: &[Side]) -> FigureTable {
    let step = minutes_a_row(&sides[0].summary);
    let starts = (0..sides[0].summary.minutes.len()).step_by(step).map(clock).collect();
    let caption = format!("Retries in each {}", minutes(step));
    let headings = Headings { caption: &caption, labels: "from", figures: "retries" };
    table(headings, starts, sides, |side| {
        counts(side, step).into_iter().map(|count| grouped(count as u64)).collect()
    })
}

/// Maximum number of bars in the chart.
const BARS: usize = 40;

pub(super) fn attempts_chart(sides: &[Side]) -> Chart {
    let most = sides.iter().map(|side| side.summary.events_by_attempts.len()).max().unwrap_or(0);
    let step = round_step(|step| most / step as usize <= BARS) as usize;
    let bars = most.div_ceil(step).max(1);
    let counts: Vec<Vec<usize>> = sides.iter().map(|side| bar_heights(side, step, bars)).collect();
    let say = |side: &Side| side.say(&format!("{}.", percentiles(side.summary.attempts, grouped)));
    let names = (0..bars).map(|bar| bar_name(bar, step)).collect();
    let caption = "Events by the number of their last attempt; 0 is the first invocation";
    let headings = Headings { caption, labels: "attempts", figures: "events" };
    let figures =
        |side: &Side| bar_heights(side, step, bars).iter().map(|&count| grouped(count as u64)).collect();
    Chart {
        id: "attempts",
        heading: "Attempts per event".into(),
        description: sides.iter().map(say).collect::<Vec<_>>().join(" "),
        keys: keys(sides, "■"),
        picture: draw_bars(sides, &counts, step).with_values(bar_values(sides, &counts, step)),
        table: Some(table(headings, names, sides, figures)),
    }
}

fn bar_heights(side: &Side, step: usize, bars: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        side.summary.events_by_attempts.chunks(step).map(|events| events.iter().sum()).collect();
    counts.resize(bars, 0);
    counts
}

/// Names the attempts that a bar stands for: `7`, or `20 to 29`.
fn bar_name(bar: usize, step: usize) -> String {
    if step == 1 { bar.to_string() } else { format!("{} to {}", bar * step, (bar + 1) * step - 1) }
}

fn bar_values(sides: &[Side], counts: &[Vec<usize>], step: usize) -> impl Iterator<Item = Values> {
    let bars = counts[0].len();
    let in_words = move |bar: usize| {
        let line =
            |(side, counts): (&Side, &Vec<usize>)| side.say(&counted(counts[bar] as u64, "event", "events"));
        let lines: Vec<String> = sides.iter().zip(counts).map(line).collect();
        format!("attempts: {}\n{}", bar_name(bar, step), lines.join("\n"))
    };
    Values::each(bars, move |bar| bar as f64 / bars as f64, in_words)
}

fn draw_bars(sides: &[Side], counts: &[Vec<usize>], step: usize) -> Picture {
    let step = step as f64;
    let bars = counts[0].len() as f64;
    let values = counts.iter().flatten().map(|&count| count as f64).chain([1.0]);
    let y = CountAxis::over(values, false);
    let x = CountAxis::Linear((-0.5 * step..(bars - 0.5) * step).into());
    let width = 0.8 / sides.len() as f64;
    drawn(|root| {
        let mut chart = frame(root, (x, "attempts (retries per event)"), (y, ""), Padding::PAGE)?;
        for (number, (side, counts)) in sides.iter().zip(counts).enumerate() {
            let bar = |(i, &count): (usize, &usize)| {
                let left = i as f64 - 0.4 + number as f64 * width;
                let corners = [(left * step, 0.0), ((left + width) * step, count as f64)];
                Rectangle::new(corners, side.colour.mix(0.8).filled())
            };
            chart.draw_series(counts.iter().enumerate().filter(|(_, count)| **count > 0).map(bar))?;
        }
        Ok(())
    })
}
