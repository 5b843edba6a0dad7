//! Draws one event's life: a row for each attempt, with waits as bars and outcomes as marks.

use std::time::Duration;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::axis::{CountAxis, TimeAxis};
use crate::chart::{BLUE, GREEN, GREY, MUTED, PURPLE, Padding, TEXT, frame, style, write};
use crate::figure::{LegendEntry, Picture, drawn_in};

/// Something that happened to an event, drawn as a mark or a bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Time since the event's first failure.
    pub since: Duration,
    /// The number of the attempt, which determines the row in the chart. For a wait, it is the attempt after the wait;
    /// for a dead-lettering, it is the attempt that was not made.
    pub attempt: u64,
    /// Kind of mark to draw at this moment.
    pub mark: Mark,
}

/// Kinds of marks in the chart of an event's life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// An attempt failed.
    Failed,
    /// An attempt succeeded.
    Succeeded,
    /// A wait began. The next [`Moment`] is the end of the wait.
    Hid,
    /// The event was dead-lettered.
    DeadLettered,
    /// A re-invocation, or a problem that left the message in the queue; the chart shows neither.
    Other,
}

/// Start of the logarithmic time axis, in seconds; less than the shortest backoff.
const START: f64 = 0.5;
/// Maximum number of attempts that have a row of their own.
const ATTEMPTS: f64 = 120.0;

/// Returns the legend: the meaning of each mark.
pub fn keys() -> Vec<LegendEntry> {
    let key = |symbol, colour, label: &str| LegendEntry { symbol, colour, label: label.into() };
    vec![
        key("■", BLUE, "hidden for its backoff"),
        key("✕", GREY, "target failed"),
        key("●", GREEN, "target succeeded"),
        key("▲", PURPLE, "dead-lettered"),
    ]
}

/// Draws an event's life in a chart of `size` pixels; `line` is the time and the label of a vertical line.
pub fn draw(size: (u32, u32), moments: &[Moment], line: Option<(Duration, &str)>) -> Picture {
    let since = |since: Duration| since.as_secs_f64().max(START);
    let end = moments.last().map_or(START, |moment| since(moment.since));
    let most = moments.iter().map(|moment| moment.attempt).max().unwrap_or(0) as f64;
    let x = TimeAxis::logarithmic(START, end * 1.3);
    let y = CountAxis::Whole((-0.7..most + 0.7).into());
    drawn_in(size, |root| {
        let line = line.filter(|(moment, _)| x.shows(since(*moment)));
        let mut chart = frame(root, (x, "time since the first failure"), (y, ""), Padding::PAGE)?;
        if let Some((moment, name)) = line {
            let ends = [(since(moment), -0.7), (since(moment), most + 0.7)];
            chart.draw_series([PathElement::new(ends, MUTED.stroke_width(1))])?;
            let (x, y) = chart.backend_coord(&ends[0]);
            write(root, name, style(TEXT, MUTED, HPos::Right, VPos::Bottom), (x - 5, y - 4))?;
        }
        // With very many attempts, only every `step`th and the last one have a row, because rows would be too thin to
        // see.
        let step = (most / ATTEMPTS).ceil().max(1.0) as u64;
        let shown = |moment: &&Moment| moment.attempt.is_multiple_of(step) || moment.attempt as f64 == most;
        let half = 0.3 * step as f64;
        for (moment, next) in moments.iter().zip(moments.iter().skip(1)) {
            if moment.mark == Mark::Hid && shown(&moment) {
                let row = moment.attempt as f64;
                let corners = [(since(moment.since), row - half), (since(next.since), row + half)];
                chart.draw_series([Rectangle::new(corners, BLUE.mix(0.75).filled())])?;
            }
        }
        let size = if most > 40.0 { 2 } else { 4 };
        for moment in moments.iter().filter(shown) {
            let at = (since(moment.since), moment.attempt as f64);
            match moment.mark {
                Mark::Failed => chart.draw_series([Cross::new(at, size, GREY.stroke_width(2))]).map(drop)?,
                Mark::Succeeded => {
                    chart.draw_series([Circle::new(at, size + 2, GREEN.filled())]).map(drop)?
                }
                Mark::DeadLettered => {
                    chart.draw_series([TriangleMarker::new(at, size + 3, PURPLE.filled())]).map(drop)?
                }
                Mark::Hid | Mark::Other => {}
            }
        }
        Ok(())
    })
}
