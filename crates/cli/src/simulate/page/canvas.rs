//! Frame and time axis of the page's charts. They are small, so that their text stays readable on a phone.

use std::time::Duration;

use comeback_timelapse::Summary;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::axis::TimeAxis;
use crate::chart::{Area, Drawing, FONT, svg};
use crate::chart::{GRID, MUTED};
use crate::simulate::page::template::Svg;

const SIZE: (u32, u32) = (420, 265);
/// A size of 15 makes text 12 units high, which is 9 pixels on a phone.
pub(super) const TEXT: i32 = 15;
/// More points than this cannot be told apart.
const POINTS: usize = 300;
/// Choices for the minutes of one point.
const STEPS: [usize; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440];

pub(super) type Frame<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

pub(super) fn drawn(draw: impl FnOnce(&Area<'_>) -> Drawing) -> Svg {
    let text = svg(SIZE, draw);
    let inner = text.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
    Svg { size: SIZE, inner: inner.expect("BUG: a drawing is an svg element").0.to_owned() }
}

/// Axes and grid. `y_label` writes the labels on the left.
pub(super) fn frame<'a, 'b, X, Y>(
    root: &'a DrawingArea<SVGBackend<'b>, Shift>,
    (x, y): (X, Y),
    x_title: &str,
    y_label: impl Fn(&f64) -> String,
) -> Result<Frame<'a, 'b, X, Y>, Box<dyn std::error::Error>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    'b: 'a,
{
    let mut chart = ChartBuilder::on(root)
        .margin_top(12)
        .margin_right(16)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(x, y)?;
    let small = (FONT, TEXT).into_text_style(root).color(&MUTED);
    chart
        .configure_mesh()
        .x_desc(x_title)
        .x_labels(8)
        .y_labels(7)
        .y_label_formatter(&y_label)
        .max_light_lines(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(MUTED)
        .label_style(small.clone())
        .axis_desc_style(small)
        .draw()?;
    Ok(chart)
}

/// A run's minutes, combined into points that can be told apart.
pub(super) struct OverTime {
    /// Minutes to a point.
    pub(super) step: usize,
    end: Duration,
}

impl OverTime {
    pub(super) fn of(summary: &Summary) -> Self {
        let minutes = summary.minutes.len() - 1;
        let step = STEPS.into_iter().find(|step| minutes / step <= POINTS);
        Self { step: step.unwrap_or(minutes.div_ceil(POINTS)), end: summary.virtual_time() }
    }

    pub(super) fn axis(&self) -> TimeAxis {
        TimeAxis::linear(self.end.as_secs_f64())
    }

    /// The corners of a line that holds each value for its time: seconds since the start, value.
    pub(super) fn steps(&self, values: &[f64]) -> Vec<(f64, f64)> {
        let width = self.step as f64 * 60.0;
        let moment = |i: usize| (i as f64 * width).min(self.end.as_secs_f64());
        values
            .iter()
            .enumerate()
            .flat_map(|(i, &value)| [(moment(i), value), (moment(i + 1), value)])
            .collect()
    }
}

/// Shades the time in which the target is down.
pub(super) fn shade<Y>(
    chart: &mut Frame<'_, '_, TimeAxis, Y>,
    outage: Duration,
    (low, high): (f64, f64),
) -> Drawing
where
    Y: Ranged<ValueType = f64>,
{
    if !outage.is_zero() {
        let corners = [(0.0, low), (outage.as_secs_f64(), high)];
        chart.draw_series([Rectangle::new(corners, GRID.mix(0.55).filled())])?;
    }
    Ok(())
}
