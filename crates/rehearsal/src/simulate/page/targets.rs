//! Charts that show each target's retries and recovery, for a run with several targets.

use comeback_operate::numbers::grouped;
use comeback_timelapse::{Scenario, Summary, TargetFigures};
use plotters::style::RGBColor;

use crate::chart::{BLUE, GREEN, GREY, LineStyle, ORANGE, PURPLE};
use crate::figure::{Chart, LegendEntry, Picture, SIZE};
use crate::simulate::page::canvas::OverTime;
use crate::simulate::page::{recovery, retries};

/// Colours of the targets' lines; more than five lines would be hard to tell apart.
const COLOURS: [RGBColor; 5] = [BLUE, ORANGE, GREEN, PURPLE, GREY];

/// Returns charts of the retries and the recovery, with a line for each of the first five targets. If there is only one
/// target, returns no charts.
pub(super) fn charts(scenario: &Scenario, summary: &Summary) -> Vec<Chart> {
    let targets: Vec<(&TargetFigures, RGBColor)> = summary.targets.iter().zip(COLOURS).collect();
    let chart = |id, heading: String, said: &dyn Fn(&TargetFigures) -> String, picture| Chart {
        id,
        heading,
        description: targets
            .iter()
            .map(|(target, _)| format!("{}: {}.", target.target, said(target)))
            .collect::<Vec<_>>()
            .join(" "),
        keys: targets
            .iter()
            .map(|(target, colour)| LegendEntry::of_line(LineStyle::Thick, *colour, &target.target))
            .collect(),
        picture,
        table: None,
    };
    if targets.is_empty() {
        return Vec::new();
    }
    let time = OverTime::of(summary);
    let made = |target: &TargetFigures| {
        let made: u64 = target.retries_by_minute.iter().copied().map(u64::from).sum();
        format!("{} retries", grouped(made))
    };
    let delivered = |target: &TargetFigures| {
        let delivered = grouped(target.recovery_delays_ms.len() as u64);
        format!("{delivered} of {} delivered", grouped(target.events_hit as u64))
    };
    let heading = format!("Retries in each {}, by function", retries::minutes(time.step));
    let mut charts =
        vec![chart("retries-by-target", heading, &made, draw_retries(scenario, &targets, &time))];
    if !scenario.longest_outage().is_zero() {
        let heading = "Events delivered after the end of their function's outage, logarithmic time";
        charts.push(chart("recovery-by-target", heading.into(), &delivered, draw_recovery(&targets)));
    }
    charts
}

fn draw_retries(scenario: &Scenario, targets: &[(&TargetFigures, RGBColor)], time: &OverTime) -> Picture {
    let counts = |target: &TargetFigures| {
        let sum = |minutes: &[u32]| minutes.iter().copied().map(f64::from).sum();
        target.retries_by_minute.chunks(time.step).map(sum).collect()
    };
    let lines = targets.iter().map(|(target, colour)| retries::RetryCurve {
        name: &target.target,
        colour: *colour,
        counts: counts(target),
    });
    retries::draw(scenario, &lines.collect::<Vec<_>>(), time, (SIZE, false))
}

fn draw_recovery(targets: &[(&TargetFigures, RGBColor)]) -> Picture {
    let lines = targets.iter().map(|(target, colour)| recovery::RecoveryLine {
        name: &target.target,
        colour: *colour,
        delays_ms: &target.recovery_delays_ms,
        hit: target.events_hit,
    });
    recovery::draw(&lines.collect::<Vec<_>>(), SIZE)
}
