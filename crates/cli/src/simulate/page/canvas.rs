//! Frame and time axis of the page's charts.

use std::time::Duration;

use comeback_timelapse::Summary;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::axis::{CountAxis, TimeAxis, count_label};
use crate::chart::{Area, Drawing, FONT, Frame, GRID, MUTED, svg};
use crate::simulate::page::template::SIZE;

/// A size of 15 makes text 12 units high, which is 9 pixels on a phone.
pub(super) const TEXT: i32 = 15;
/// Where a logarithmic axis of counts begins: below one, so that none and one differ.
pub(super) const FLOOR: f64 = 0.8;
/// More points than this cannot be told apart.
const POINTS: usize = 300;
/// Choices for the minutes of one point.
const STEPS: [usize; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440];

/// The content of the picture's outermost element.
pub(super) fn drawn(draw: impl FnOnce(&Area<'_>) -> Drawing) -> String {
    let text = svg(SIZE, draw);
    let inner = text.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
    inner.expect("BUG: a drawing is an svg element").0.to_owned()
}

/// Axes and grid. `unit` ends the labels on the left.
pub(super) fn frame<'a, 'b: 'a, X: Ranged<ValueType = f64> + ValueFormatter<f64>>(
    root: &'a Area<'b>,
    (x, y): (X, CountAxis),
    x_title: &str,
    unit: &str,
) -> Result<Frame<'a, 'b, X, CountAxis>, Box<dyn std::error::Error>> {
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
        .y_label_formatter(&|y| count_label(*y) + unit)
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
pub(super) fn shade(
    chart: &mut Frame<'_, '_, TimeAxis, CountAxis>,
    outage: Duration,
    (low, high): (f64, f64),
) -> Drawing {
    if !outage.is_zero() {
        let corners = [(0.0, low), (outage.as_secs_f64(), high)];
        chart.draw_series([Rectangle::new(corners, GRID.mix(0.55).filled())])?;
    }
    Ok(())
}
