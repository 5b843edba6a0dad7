//! Draws the simulation report's chart of the recovery after the outage.

use comeback_engine::Jitter;
use comeback_operate::durations;
use comeback_operate::numbers::grouped;
use comeback_timelapse::{Percentiles, Scenario, Summary};
use plotters::prelude::*;

use crate::axis::{CountAxis, TimeAxis};
use crate::chart::{self, GREEN, GREY, PURPLE, Padding, frame};
use crate::figure::{Chart, FigureTable, LegendEntry, Picture, Values, drawn_in};
use crate::simulate::figures::time;
use crate::simulate::page::runs::Side;

/// Number of points through which each line is drawn.
const POINTS: usize = 200;
/// Number of parts of the time axis, each with values to show while the pointer is over it.
const MOMENTS: usize = 100;

/// A line of the recovery chart: the delays of one run's delivered events.
pub(super) struct RecoveryLine<'a> {
    pub(super) name: &'a str,
    pub(super) colour: RGBColor,
    /// Milliseconds from the end of the outage to each delivery, in ascending order.
    pub(super) delays_ms: &'a [u64],
    /// Number of events that arrived during the outage, delivered or not.
    pub(super) hit: usize,
}

pub(super) struct Recovery<'a> {
    name: String,
    colour: RGBColor,
    summary: &'a Summary,
}

/// Colours for the runs that differ from the simulated policy's run only in their jitter.
const OTHERS: [RGBColor; 3] = [GREEN, PURPLE, GREY];

/// Returns the runs to draw: the simulated policy's run, the runs in `jitters`, and the compared policy's run. If a run
/// in `jitters` has the compared policy's settings, it takes the place of that policy's run.
pub(super) fn of<'a>(sides: &'a [Side], jitters: &'a [(Jitter, Summary)]) -> Vec<Recovery<'a>> {
    let (own, compared) = (&sides[0], &sides[1..]);
    let is_of = |side: &Side, jitter: Jitter| side.flags == own.flags.with([("jitter", jitter.name())]);
    let strategy = |jitter, colour, summary| Recovery { name: format!("jitter {jitter}"), colour, summary };
    let mut first = strategy(own.policies.stack().backoff().jitter(), own.colour, &own.summary);
    if jitters.is_empty() {
        first.name = own_name(own);
    }
    let mut recoveries = vec![first];
    let mut others = OTHERS.into_iter();
    for (jitter, summary) in jitters {
        let colour = compared.iter().find(|side| is_of(side, *jitter)).map(|side| side.colour);
        let colour = colour.or_else(|| others.next()).expect("BUG: more jitters than colours");
        recoveries.push(strategy(*jitter, colour, summary));
    }
    let differs = |side: &&Side| !jitters.iter().any(|(jitter, _)| is_of(side, *jitter));
    recoveries.extend(compared.iter().filter(differs).map(|side| Recovery {
        name: side.name.clone(),
        colour: side.colour,
        summary: &side.summary,
    }));
    recoveries
}

fn own_name(side: &Side) -> String {
    if side.name.is_empty() { "this policy".into() } else { side.name.clone() }
}

/// Draws a line for each run: the share of the outage's events that have been delivered, against the time since the
/// outage ended.
pub(super) fn chart(recoveries: &[Recovery<'_>], size: (u32, u32)) -> Chart {
    let say = |recovery: &Recovery<'_>| {
        let half = recovery.summary.recovery_delay_ms.map_or("-".into(), |delay| time(delay.p50));
        format!("{}: half of the delivered events within {half}.", recovery.name)
    };
    let key = |Recovery { name, colour, .. }: &Recovery<'_>| {
        LegendEntry::of_line(chart::LineStyle::Thick, *colour, name)
    };
    let lines = recoveries.iter().map(|recovery| RecoveryLine {
        name: &recovery.name,
        colour: recovery.colour,
        delays_ms: &recovery.summary.recovery_delays_ms,
        hit: recovery.summary.events_hit,
    });
    Chart {
        id: "recovery",
        heading: "Events delivered after the outage's end, logarithmic time".into(),
        description: recoveries.iter().map(say).collect::<Vec<_>>().join(" "),
        keys: recoveries.iter().map(key).collect(),
        picture: draw(&lines.collect::<Vec<_>>(), size),
        table: None,
    }
}

impl RecoveryLine<'_> {
    /// Returns the percentage of events that were delivered within this many seconds after the end of the outage.
    fn delivered_by(&self, seconds: f64) -> f64 {
        self.percent(self.delays_ms.partition_point(|ms| *ms as f64 / 1e3 <= seconds))
    }

    fn percent(&self, delivered: usize) -> f64 {
        delivered as f64 / self.hit.max(1) as f64 * 100.0
    }
}

/// Draws the lines, the first one on top.
pub(super) fn draw(lines: &[RecoveryLine<'_>], size: (u32, u32)) -> Picture {
    let seconds = |ms: u64| ms as f64 / 1e3;
    let delays = || lines.iter().map(|line| line.delays_ms);
    let first = delays().filter_map(|delays| delays.get(delays.len() / 100)).min();
    let last = delays().filter_map(|delays| delays.last()).max();
    let start = first.map_or(1.0, |&ms| seconds(ms)).max(1.0) / 1.3;
    let axis = || TimeAxis::logarithmic(start, last.map_or(1.0, |&ms| seconds(ms)) * 1.1);
    let y = CountAxis::Percent((0.0..102.0).into());
    let picture = drawn_in(size, |root| {
        let mut chart = frame(root, (axis(), "time since the outage's end"), (y, ""), Padding::PAGE)?;
        for (i, line) in lines.iter().enumerate().cycle().skip(1).take(lines.len()) {
            let delays = line.delays_ms;
            let point = |i: usize| {
                let delivered = delays.len() * i / POINTS;
                let at = delivered.checked_sub(1).map_or(start, |last| seconds(delays[last]));
                (at.max(start), line.percent(delivered))
            };
            let points: Vec<(f64, f64)> = (0..=POINTS).map(point).collect();
            let stroke = line.colour.stroke_width(if i == 0 { 3 } else { 2 });
            chart.draw_series([PathElement::new(points, stroke)])?;
        }
        Ok(())
    });
    let edge = |moment: usize| moment as f64 / MOMENTS as f64;
    let in_words = |moment: usize| {
        let end = axis().at(edge(moment + 1));
        let line =
            |line: &RecoveryLine<'_>| format!("{}: {:.1} % delivered", line.name, line.delivered_by(end));
        let lines: Vec<String> = lines.iter().map(line).collect();
        format!("within {}\n{}", durations::short(end), lines.join("\n"))
    };
    picture.with_values(Values::each(MOMENTS, edge, in_words))
}

pub(super) fn table(scenario: &Scenario, recoveries: &[Recovery<'_>]) -> FigureTable {
    let column = |head: &str, cell: &dyn Fn(&Summary) -> String| {
        (head.to_owned(), recoveries.iter().map(|recovery| cell(recovery.summary)).collect())
    };
    let within = |head, of: fn(Percentiles) -> u64| {
        column(head, &|summary| summary.recovery_delay_ms.map_or("-".into(), |delay| time(of(delay))))
    };
    let most_after = |summary: &Summary| {
        let after = summary.minutes.iter().skip(scenario.longest_outage().as_secs() as usize / 60);
        grouped(after.map(|minute| minute.retries).max().unwrap_or(0).into())
    };
    let delivered = |summary: &Summary| {
        let delivered = summary.recovery_delays_ms.len() as u64;
        format!("{} of {}", grouped(delivered), grouped(summary.events_hit as u64))
    };
    FigureTable {
        caption: "Recovery of the events that arrived during the outage, counted from its end".into(),
        columns: vec![
            (String::new(), recoveries.iter().map(|recovery| recovery.name.clone()).collect()),
            column("delivered", &delivered),
            within("half within", |delay| delay.p50),
            within("99 % within", |delay| delay.p99),
            within("all within", |delay| delay.max),
            column("retries", &|summary| grouped(summary.retries)),
            column("busiest minute after it", &most_after),
            column("USD", &|summary| format!("{:.4}", summary.cost_usd)),
        ],
    }
}
