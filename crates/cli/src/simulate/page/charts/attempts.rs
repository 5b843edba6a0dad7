use indicatif::HumanCount;
use plotters::prelude::*;

use crate::chart::count_axis::{self, CountAxis};
use crate::simulate::figures::percentiles;
use crate::simulate::page::charts::canvas::{drawn, frame};
use crate::simulate::page::side::{Side, head, keys};
use crate::simulate::page::template::{Chart, Svg, Table};
use crate::text::numbers::round_step;

/// More bars than this are too thin.
const BARS: usize = 40;

/// How many events had how many attempts.
pub(in crate::simulate::page) fn chart(sides: &[Side]) -> Chart {
    let most = sides.iter().map(|side| side.summary.events_by_attempts.len()).max().unwrap_or(0);
    let step = round_step(|step| most / step as usize <= BARS) as usize;
    let bars = most.div_ceil(step).max(1);
    let counts: Vec<Vec<usize>> = sides.iter().map(|side| counts(side, step, bars)).collect();
    let say = |side: &Side| side.say(&format!("{}.", percentiles(side.summary.attempts, HumanCount)));
    let row = |i: usize| {
        let figures = counts.iter().map(|counts| HumanCount(counts[i] as u64).to_string());
        std::iter::once(name(i, step)).chain(figures).collect()
    };
    Chart {
        id: "attempts",
        heading: "Attempts per event".into(),
        description: sides.iter().map(say).collect::<Vec<_>>().join(" "),
        keys: keys(sides, "■"),
        svg: draw(sides, &counts, step),
        table: Some(Table {
            caption: "Events by the number of their last attempt; 0 is the first invocation".into(),
            head: head("attempts", sides, "events"),
            rows: (0..bars).map(row).collect(),
        }),
    }
}

fn counts(side: &Side, step: usize, bars: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        side.summary.events_by_attempts.chunks(step).map(|events| events.iter().sum()).collect();
    counts.resize(bars, 0);
    counts
}

/// `7`, or `20 to 29`.
fn name(bar: usize, step: usize) -> String {
    if step == 1 { bar.to_string() } else { format!("{} to {}", bar * step, (bar + 1) * step - 1) }
}

fn draw(sides: &[Side], counts: &[Vec<usize>], step: usize) -> Svg {
    let step = step as f64;
    let bars = counts[0].len() as f64;
    let values = counts.iter().flatten().map(|&count| count as f64).chain([1.0]);
    let y = CountAxis::over(values, false);
    let x = CountAxis::Linear((-0.5 * step..(bars - 0.5) * step).into());
    let width = 0.8 / sides.len() as f64;
    drawn(|root| {
        let mut chart =
            frame(root, (x, y), "attempts (retries of one event)", |count| count_axis::text(*count))?;
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
