use std::ops::Range;
use std::time::Duration;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::text::durations;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Where ticks may stand, and their labels; the most useful first.
const MOMENTS: [(f64, &str); 19] = [
    (1.0, "1s"),
    (10.0, "10s"),
    (MINUTE, "1m"),
    (10.0 * MINUTE, "10m"),
    (HOUR, "1h"),
    (DAY, "24h"),
    (14.0 * DAY, "14d"),
    (6.0 * HOUR, "6h"),
    (3.0 * DAY, "3d"),
    (30.0, "30s"),
    (3.0, "3s"),
    (5.0, "5s"),
    (2.0 * MINUTE, "2m"),
    (5.0 * MINUTE, "5m"),
    (30.0 * MINUTE, "30m"),
    (2.0 * HOUR, "2h"),
    (12.0 * HOUR, "12h"),
    (2.0 * DAY, "2d"),
    (7.0 * DAY, "7d"),
];
/// An even axis has this many steps at most.
const STEPS: f64 = 8.0;

/// Time from left to right, linear or logarithmic.
pub(crate) struct TimeAxis {
    logarithmic: bool,
    start: f64,
    end: f64,
}

impl TimeAxis {
    /// From 0, in even steps.
    pub(crate) fn linear(end: f64) -> Self {
        Self { logarithmic: false, start: 0.0, end: end.max(1.0) }
    }

    /// Equal ratios are equal lengths.
    pub(crate) fn logarithmic(start: f64, end: f64) -> Self {
        Self { logarithmic: true, start, end: end.max(start * 2.0) }
    }

    pub(crate) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// Whether it is on the axis.
    pub(crate) fn shows(&self, seconds: f64) -> bool {
        (self.start..=self.end).contains(&seconds)
    }

    /// How far to the right a moment is, 0 to 1.
    pub(crate) fn share(&self, seconds: f64) -> f64 {
        let share = if self.logarithmic {
            (seconds.max(self.start) / self.start).ln() / (self.end / self.start).ln()
        } else {
            (seconds - self.start) / (self.end - self.start)
        };
        share.clamp(0.0, 1.0)
    }

    /// Round moments at least this share of the axis apart, from left to right: seconds and label.
    pub(crate) fn ticks(&self, apart: f64) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for (seconds, label) in self.moments() {
            let apart_from = |other| (self.share(seconds) - self.share(other)).abs() >= apart;
            if self.shows(seconds) && ticks.iter().all(|&(other, _)| apart_from(other)) {
                ticks.push((seconds, label));
            }
        }
        ticks.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        ticks
    }

    fn moments(&self) -> Vec<(f64, String)> {
        if self.logarithmic {
            return MOMENTS.iter().map(|&(seconds, label)| (seconds, label.to_owned())).collect();
        }
        let steps = MOMENTS.iter().map(|&(seconds, _)| seconds);
        let step = steps.filter(|step| self.end / step <= STEPS).fold(14.0 * DAY, f64::min);
        let tick = |i| {
            let seconds = step * f64::from(i);
            (seconds, durations::text(Duration::from_secs(seconds as u64)))
        };
        (0..=(self.end / step) as u32).map(tick).collect()
    }
}

impl Ranged for TimeAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, seconds: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.share(*seconds) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(1.0 / hint.max_num_points() as f64).into_iter().map(|(seconds, _)| seconds).collect()
    }

    fn range(&self) -> Range<f64> {
        self.start..self.end
    }
}

impl ValueFormatter<f64> for TimeAxis {
    fn format_ext(&self, seconds: &f64) -> String {
        durations::text(Duration::from_secs_f64(*seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &TimeAxis, apart: f64) -> Vec<String> {
        axis.ticks(apart).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_logarithmic_axis_names_round_moments() {
        let axis = TimeAxis { logarithmic: true, start: 1.0 / 1.3, end: DAY };
        assert_eq!(labels(&axis, 0.1), ["1s", "10s", "1m", "10m", "1h", "6h", "24h"]);
        let short = TimeAxis { logarithmic: true, start: 1.0, end: MINUTE };
        assert_eq!(labels(&short, 0.1), ["1s", "3s", "5s", "10s", "30s", "1m"]);
    }

    #[test]
    fn a_linear_axis_has_even_steps() {
        let axis = TimeAxis { logarithmic: false, start: 0.0, end: 3.0 * HOUR };
        assert_eq!(labels(&axis, 0.1), ["0s", "30m", "1h", "1h 30m", "2h", "2h 30m", "3h"]);
        assert_eq!(axis.share(1.5 * HOUR), 0.5);
    }

    #[test]
    fn equal_ratios_are_equal_lengths_on_a_logarithmic_axis() {
        let axis = TimeAxis { logarithmic: true, start: 1.0, end: 10_000.0 };
        let shares = [0.5, 1.0, 10.0, 100.0, 10_000.0, 20_000.0].map(|seconds| axis.share(seconds));
        assert_eq!(shares, [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
        assert!(!axis.shows(0.5) && axis.shows(1.0) && !axis.shows(20_000.0));
    }
}
