//! Pictures that show when a policy retries an event: one for a page, and one for the file that `comeback schedule`
//! writes.

use comeback_engine::Policy;
use comeback_operate::durations;
use comeback_timelapse::{Schedule, ScheduledRetry};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::axis::CountAxis;
use crate::chart::{
    Area, BLUE, Drawing, LineStyle, MUTED, ORANGE, Padding, PlotArea, TEXT, frame, header, style, svg, write,
};
use crate::figure::{Chart, FigureTable, LegendEntry, drawn};
use crate::schedule::{axis_of, headline, outcome, percent, shown};

/// Size, in pixels, of the picture that is written to a file.
const SIZE: (u32, u32) = (960, 720);
/// Height of the file's header with its legend, in pixels.
const HEADER: u32 = 136;
/// Width, in pixels, of the file's second plot, which shows the share of events that reach each retry.
const SHARES: u32 = 280;
/// Opacity of the band that covers 90 % of the events.
const BAND: f64 = 0.4;

/// Draws a row for each retry: its time, and the share of events that reach it.
pub fn draw(policy: &Policy, schedule: &Schedule) -> String {
    svg(SIZE, |root| {
        let (top, plots) = root.split_vertically(HEADER);
        let (times, shares) = plots.split_horizontally(SIZE.0 - SHARES);
        draw_header(&top, &headline(policy, schedule), &outcome(schedule))?;
        draw_times(&times, policy, schedule, ("retry", Padding::below(16)))?;
        draw_shares(&shares, schedule)
    })
}

/// Draws each retry as a point at its mean time, in a band that covers nine events in ten.
pub(super) fn chart(policy: &Policy, schedule: &Schedule) -> Chart {
    Chart {
        id: "schedule",
        heading: "When retries come, by their number".into(),
        description: format!("{}.", outcome(schedule)),
        keys: vec![
            LegendEntry { symbol: "●", colour: BLUE, label: "mean".into() },
            LegendEntry::of_line(LineStyle::Thin, BLUE, "nine events in ten"),
            LegendEntry::of_line(LineStyle::Thick, ORANGE, "MAX_AGE"),
        ],
        picture: drawn(|root| draw_times(root, policy, schedule, ("", Padding::PAGE))),
        table: Some(figures(schedule)),
    }
}

fn draw_header(area: &Area<'_>, headline: &str, outcome: &str) -> Drawing {
    header(
        area,
        "When retries come, and how many events get that far",
        headline.lines().chain([outcome]),
        20,
    )?;
    let label = |text, x| write(area, text, style(14, MUTED, HPos::Left, VPos::Center), (x, 122));
    area.draw(&Rectangle::new([(34, 118), (68, 126)], BLUE.mix(BAND).filled()))?;
    label("nine events in ten", 76)?;
    area.draw(&Circle::new((224, 122), 4, BLUE.filled()))?;
    label("mean", 234)
}

/// An axis with a row for each retry, the first at the bottom.
fn rows(schedule: &Schedule) -> CountAxis {
    CountAxis::Whole((0.3..last(schedule) + 0.7).into())
}

fn last(schedule: &Schedule) -> f64 {
    schedule.retries.len().max(1) as f64
}

/// Returns the retries to draw, at most one for each pixel, and the height of a row in pixels.
fn drawn_rows<'s, X>(
    chart: &PlotArea<'_, '_, X, CountAxis>,
    schedule: &'s Schedule,
) -> (impl Iterator<Item = &'s ScheduledRetry> + use<'s, X>, f64)
where
    X: plotters::coord::ranged1d::Ranged<ValueType = f64>,
{
    let (_, height) = chart.plotting_area().dim_in_pixel();
    let row = f64::from(height) / last(schedule);
    (schedule.retries.iter().step_by((1.0 / row).ceil() as usize), row)
}

fn draw_times(
    area: &Area<'_>,
    policy: &Policy,
    schedule: &Schedule,
    (y_title, room): (&str, Padding),
) -> Drawing {
    let x = axis_of(schedule, policy.max_age());
    let max_age = policy.max_age().as_secs_f64();
    let is_max_age_shown = x.shows(max_age);
    let scale = if x.logarithmic { " (logarithmic scale)" } else { "" };
    let x_title = format!("time since the first failure{scale}");
    let mut chart = frame(area, (x, &x_title), (rows(schedule), y_title), room)?;
    let (retries, row) = drawn_rows(&chart, schedule);
    let width = (row * 0.6).clamp(1.0, 12.0) as u32;
    for retry in retries {
        let (at, row) = (retry.since_first_failure_seconds, retry.retry as f64);
        let band = [(at.p5.into(), row), (at.p95.into(), row)];
        chart.draw_series([PathElement::new(band, BLUE.mix(BAND).stroke_width(width))])?;
        chart.draw_series([Circle::new((at.mean, row), (width / 2).clamp(1, 4), BLUE.filled())])?;
    }
    if is_max_age_shown {
        LineStyle::Thick.draw(&mut chart, vec![(max_age, 0.3), (max_age, last(schedule) + 0.7)], ORANGE)?;
        let (x, y) = chart.backend_coord(&(max_age, 0.3));
        let (left, top) = area.get_base_pixel();
        let style = style(TEXT, ORANGE, HPos::Right, VPos::Bottom);
        write(area, "MAX_AGE", style, (x - left - 6, y - top - 4))?;
    }
    Ok(())
}

fn draw_shares(area: &Area<'_>, schedule: &Schedule) -> Drawing {
    let x = CountAxis::Percent((0.0..100.0).into());
    let room = Padding { left: 40, ..Padding::below(16) };
    let mut chart = frame(area, (x, "events that get this far"), (rows(schedule), ""), room)?;
    let (retries, row) = drawn_rows(&chart, schedule);
    let half = 0.3_f64.max(0.5 / row);
    let bar = |retry: &ScheduledRetry| {
        let (share, row) = (100.0 * retry.events as f64 / schedule.events as f64, retry.retry as f64);
        Rectangle::new([(0.0, row - half), (share.max(0.5), row + half)], BLUE.mix(0.55).filled())
    };
    chart.draw_series(retries.map(bar))?;
    Ok(())
}

fn figures(schedule: &Schedule) -> FigureTable {
    let retries: Vec<_> = shown(&schedule.retries).collect();
    let time = |seconds: f64| durations::short(seconds);
    FigureTable {
        caption: format!("Retries of an event that fails every time: {}", outcome(schedule)),
        columns: vec![
            ("retry".into(), retries.iter().map(|it| it.retry.to_string()).collect()),
            ("mean wait".into(), retries.iter().map(|it| time(it.wait_seconds.mean)).collect()),
            (
                "since failure".into(),
                retries.iter().map(|it| time(it.since_first_failure_seconds.mean)).collect(),
            ),
            (
                "events".into(),
                retries.iter().map(|it| percent(it.events as f64 / schedule.events as f64)).collect(),
            ),
        ],
    }
}
