//! Axes of a plot with round ticks: counts, and time.

use std::ops::Range;
use std::time::Duration;

use indicatif::HumanCount;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use crate::text::durations;

/// An axis from 0, or a logarithmic one with ticks at 1, 2 and 5.
pub(crate) enum CountAxis {
    Linear(RangedCoordf64),
    Log(Range<f64>),
}

impl CountAxis {
    /// Holds every value, with some margin.
    pub(crate) fn over(values: impl Iterator<Item = f64> + Clone, log: bool) -> Self {
        let (low, high) = range(values);
        if log { Self::Log(low / 1.25..high * 1.25) } else { Self::Linear((0.0..high * 1.05).into()) }
    }
}

/// The least and the greatest value.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
}

impl Ranged for CountAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Self::Linear(axis) => axis.map(value, limit),
            Self::Log(Range { start, end }) => {
                let share = (value / start).ln() / (end / start).ln();
                limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let (start, end) = match self {
            Self::Linear(axis) => return axis.key_points(hint),
            Self::Log(range) => (range.start, range.end),
        };
        let ticks = |steps: &[f64]| -> Vec<f64> {
            let decades = start.log10().floor() as i32..=end.log10().floor() as i32;
            let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
            all.filter(|tick| (start..=end).contains(tick)).collect()
        };
        let fine = ticks(&[1.0, 2.0, 5.0]);
        if fine.len() <= hint.max_num_points() { fine } else { ticks(&[1.0]) }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Self::Linear(axis) => axis.range(),
            Self::Log(range) => range.clone(),
        }
    }
}

impl ValueFormatter<f64> for CountAxis {
    fn format_ext(&self, value: &f64) -> String {
        count_label(*value)
    }
}

/// Label of a tick: a short number, even if arithmetic has left it a little off (0.30000000000000004).
pub(crate) fn count_label(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6 + 0.0;
    if rounded < 1_000.0 { rounded.to_string() } else { HumanCount(rounded as u64).to_string() }
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Moments for ticks, with their labels; the most useful first.
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
    use plotters::coord::ranged1d::BoldPoints;

    use super::*;

    fn ticks(axis: &CountAxis, most: usize) -> Vec<String> {
        axis.key_points(BoldPoints(most)).iter().map(|tick| axis.format_ext(tick)).collect()
    }

    #[test]
    fn a_logarithmic_axis_of_counts_has_round_ticks() {
        let axis = CountAxis::over([0.4, 101.0].into_iter(), true);
        assert_eq!(ticks(&axis, 10), ["0.5", "1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(ticks(&axis, 5), ["1", "10", "100"]);
        let wide = CountAxis::over([10_000.0, 1_000_000.0].into_iter(), true);
        assert_eq!(ticks(&wide, 4), ["10,000", "100,000", "1,000,000"]);
    }

    #[test]
    fn a_logarithmic_axis_of_counts_has_equal_lengths_for_equal_ratios() {
        let axis = CountAxis::Log(1.0..10_000.0);
        assert_eq!([1.0, 10.0, 100.0, 10_000.0].map(|value| axis.map(&value, (400, 0))), [400, 300, 200, 0]);
    }

    #[test]
    fn a_linear_axis_of_counts_starts_at_0() {
        let axis = CountAxis::over([100.0, 190.0].into_iter(), false);
        assert_eq!(axis.range().start, 0.0);
        assert_eq!(axis.map(&0.0, (0, 100)), 0);
        assert_eq!(ticks(&axis, 6)[..3], ["0", "50", "100"]);
    }

    fn labels(axis: &TimeAxis, apart: f64) -> Vec<String> {
        axis.ticks(apart).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_logarithmic_axis_of_time_names_round_moments() {
        let axis = TimeAxis { logarithmic: true, start: 1.0 / 1.3, end: DAY };
        assert_eq!(labels(&axis, 0.1), ["1s", "10s", "1m", "10m", "1h", "6h", "24h"]);
        let short = TimeAxis { logarithmic: true, start: 1.0, end: MINUTE };
        assert_eq!(labels(&short, 0.1), ["1s", "3s", "5s", "10s", "30s", "1m"]);
    }

    #[test]
    fn a_linear_axis_of_time_has_even_steps() {
        let axis = TimeAxis { logarithmic: false, start: 0.0, end: 3.0 * HOUR };
        assert_eq!(labels(&axis, 0.1), ["0s", "30m", "1h", "1h 30m", "2h", "2h 30m", "3h"]);
        assert_eq!(axis.share(1.5 * HOUR), 0.5);
    }

    #[test]
    fn a_logarithmic_axis_of_time_has_equal_lengths_for_equal_ratios() {
        let axis = TimeAxis { logarithmic: true, start: 1.0, end: 10_000.0 };
        let shares = [0.5, 1.0, 10.0, 100.0, 10_000.0, 20_000.0].map(|seconds| axis.share(seconds));
        assert_eq!(shares, [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
        assert!(!axis.shows(0.5) && axis.shows(1.0) && !axis.shows(20_000.0));
    }
}
