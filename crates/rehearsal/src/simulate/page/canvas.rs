//! Time axis for the charts in the simulation report.

use std::time::Duration;

use comeback_timelapse::Summary;
use plotters::prelude::*;

use crate::axis::{CountAxis, TimeAxis};
use crate::chart::{Drawing, GRID, PlotArea, steps};
use crate::figure::Values;
use crate::simulate::figures::clock;

/// Start of a logarithmic axis for counts, below 1 so that counts of 0 and 1 look different.
pub(super) const FLOOR: f64 = 0.8;
/// Maximum number of points that a chart has room to show.
const POINTS: usize = 300;
/// The usual numbers of minutes per point on a chart. A very long run uses a larger number.
const STEPS: [usize; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440];

/// Groups the per-minute values of a run into no more points than a chart has room for.
pub(super) struct OverTime {
    /// Number of minutes of the run that each point on a chart covers.
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

    /// Returns the start of the period that a point on a chart covers, in seconds since the run's start.
    fn edge(&self, point: usize) -> f64 {
        (point as f64 * self.step as f64 * 60.0).min(self.end.as_secs_f64())
    }

    /// Returns the corners of a step line. Each has a time, in seconds since the run's start, and a value.
    pub(super) fn steps(&self, values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        steps(values, |point| self.edge(point))
    }

    /// Returns the tooltip for each point of a chart; `text` describes a point's values.
    pub(super) fn values(
        &self,
        points: usize,
        text: impl Fn(usize) -> String,
    ) -> impl Iterator<Item = Values> {
        let share = |point| self.edge(point) / self.end.as_secs_f64();
        let text = move |point| format!("from {}\n{}", clock(point * self.step), text(point));
        Values::each(points, share, text)
    }
}

pub(super) fn shade(
    chart: &mut PlotArea<'_, '_, TimeAxis, CountAxis>,
    outage: Duration,
    (low, high): (f64, f64),
) -> Drawing {
    if !outage.is_zero() {
        let corners = [(0.0, low), (outage.as_secs_f64(), high)];
        chart.draw_series([Rectangle::new(corners, GRID.mix(0.55).filled())])?;
    }
    Ok(())
}
