//! Plot axes with ticks at round values, for counts and for time.

use comeback_operate::numbers::grouped;
use std::ops::Range;
use std::time::Duration;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use comeback_operate::durations;

/// A plot axis for counts, linear or logarithmic.
pub enum CountAxis {
    /// Linear, starting at 0 or below.
    Linear(RangedCoordf64),
    /// Linear, with ticks only at whole numbers from 0 upwards.
    Whole(RangedCoordf64),
    /// Linear, for percentages.
    Percent(RangedCoordf64),
    /// Logarithmic, with ticks at 1, 2 and 5 times powers of ten.
    Log(Range<f64>),
}

impl CountAxis {
    /// Creates an axis that includes every value, with some margin; `log` makes it logarithmic.
    pub fn over(values: impl Iterator<Item = f64> + Clone, log: bool) -> Self {
        let (low, high) = range(values);
        if log { Self::Log(low / 1.25..high * 1.25) } else { Self::Linear((0.0..high * 1.05).into()) }
    }
}

/// Returns the smallest and the largest of the values. No value may be negative.
pub fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
}

impl Ranged for CountAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Self::Linear(axis) | Self::Whole(axis) | Self::Percent(axis) => axis.map(value, limit),
            Self::Log(Range { start, end }) => {
                let share = (value / start).ln() / (end / start).ln();
                limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let (start, end) = match self {
            Self::Linear(axis) | Self::Percent(axis) => return axis.key_points(hint),
            Self::Whole(axis) => {
                let ticks = axis.key_points(hint).into_iter();
                return ticks.filter(|tick| *tick > -0.1 && (tick - tick.round()).abs() < 1e-6).collect();
            }
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
            Self::Linear(axis) | Self::Whole(axis) | Self::Percent(axis) => axis.range(),
            Self::Log(range) => range.clone(),
        }
    }
}

impl ValueFormatter<f64> for CountAxis {
    fn format_ext(&self, value: &f64) -> String {
        let unit = if matches!(self, Self::Percent(_)) { " %" } else { "" };
        count_label(*value) + unit
    }
}

/// Rounds and formats a tick's value: 0.30000000000000004 becomes `0.3`.
fn count_label(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6 + 0.0;
    if rounded < 1_000.0 { rounded.to_string() } else { grouped(rounded as u64) }
}

/// Round values for the ticks of a time axis, in seconds. A logarithmic axis prefers them in this order. A linear
/// axis uses one of them as the interval between ticks.
const MOMENTS: [u32; 19] = [
    1, 10, 60, 600, 3_600, 86_400, 1_209_600, 21_600, 259_200, 30, 3, 5, 120, 300, 1_800, 7_200, 43_200,
    172_800, 604_800,
];
/// Maximum number of intervals between the ticks of a linear time axis.
const STEPS: f64 = 8.0;

/// A horizontal time axis, linear or logarithmic.
pub struct TimeAxis {
    pub(crate) logarithmic: bool,
    /// True if the axis ends at the present, and its labels say how long ago each moment was.
    is_ago: bool,
    start: f64,
    end: f64,
}

impl TimeAxis {
    /// Creates a linear axis from 0 to `end`, in seconds.
    pub fn linear(end: f64) -> Self {
        Self { logarithmic: false, is_ago: false, start: 0.0, end: end.max(1.0) }
    }

    /// Creates a linear axis that runs from `longest` seconds ago, on the left, to now, on the right.
    pub fn ago(longest: f64) -> Self {
        Self { is_ago: true, ..Self::linear(longest) }
    }

    /// Creates a logarithmic axis from `start` to `end`, in seconds.
    pub fn logarithmic(start: f64, end: f64) -> Self {
        Self { logarithmic: true, is_ago: false, start, end: end.max(start * 2.0) }
    }

    /// Returns true if a time, in seconds, lies on the axis.
    pub fn shows(&self, seconds: f64) -> bool {
        (self.start..=self.end).contains(&seconds)
    }

    /// Returns the position of a time on the axis, from 0 at the left end to 1 at the right end.
    pub fn share(&self, seconds: f64) -> f64 {
        let share = if self.logarithmic {
            (seconds.max(self.start) / self.start).ln() / (self.end / self.start).ln()
        } else {
            (seconds - self.start) / (self.end - self.start)
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns the time, in seconds, at a position on the axis, from 0 (left) to 1 (right).
    pub fn at(&self, share: f64) -> f64 {
        if self.logarithmic {
            self.start * (self.end / self.start).powf(share)
        } else {
            self.start + (self.end - self.start) * share
        }
    }

    /// Returns the time, in seconds, and the label of each tick, from left to right. `apart` is the minimum distance
    /// between ticks, as a fraction of the axis.
    pub fn ticks(&self, apart: f64) -> Vec<(f64, String)> {
        let mut ticks: Vec<f64> = Vec::new();
        for seconds in self.moments() {
            let apart_from = |other: &f64| (self.share(seconds) - self.share(*other)).abs() >= apart;
            if self.shows(seconds) && ticks.iter().all(apart_from) {
                ticks.push(seconds);
            }
        }
        ticks.sort_by(f64::total_cmp);
        ticks.into_iter().map(|seconds| (seconds, self.format_ext(&seconds))).collect()
    }

    fn moments(&self) -> Vec<f64> {
        let moments = MOMENTS.map(f64::from);
        if self.logarithmic {
            return moments.into();
        }
        let steps = moments.into_iter().filter(|step| self.end / step <= STEPS);
        let step = steps.fold(14.0 * 86_400.0, f64::min);
        (0..=(self.end / step) as u32).map(|i| step * f64::from(i)).collect()
    }
}

impl Ranged for TimeAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, seconds: &f64, (left, right): (i32, i32)) -> i32 {
        let (start, end) = if self.is_ago { (right, left) } else { (left, right) };
        start + (self.share(*seconds) * f64::from(end - start)).round() as i32
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
        match seconds {
            0.0 if self.is_ago => "now".to_owned(),
            _ => durations::text(Duration::from_secs_f64(*seconds)),
        }
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
    fn logarithmic_counts_have_round_ticks() {
        let axis = CountAxis::over([0.4, 101.0].into_iter(), true);
        assert_eq!(ticks(&axis, 10), ["0.5", "1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(ticks(&axis, 5), ["1", "10", "100"]);
        let wide = CountAxis::over([10_000.0, 1_000_000.0].into_iter(), true);
        assert_eq!(ticks(&wide, 4), ["10,000", "100,000", "1,000,000"]);
    }

    #[test]
    fn logarithmic_counts_have_equal_lengths_for_equal_ratios() {
        let axis = CountAxis::Log(1.0..10_000.0);
        assert_eq!([1.0, 10.0, 100.0, 10_000.0].map(|value| axis.map(&value, (400, 0))), [400, 300, 200, 0]);
    }

    #[test]
    fn linear_counts_start_at_0() {
        let axis = CountAxis::over([100.0, 190.0].into_iter(), false);
        assert_eq!(axis.range().start, 0.0);
        assert_eq!(axis.map(&0.0, (0, 100)), 0);
        assert_eq!(ticks(&axis, 6)[..3], ["0", "50", "100"]);
    }

    #[test]
    fn attempts_have_whole_numbers() {
        let axis = |most: f64| CountAxis::Whole((-0.7..most + 0.7).into());
        assert_eq!(ticks(&axis(0.0), 6), ["0"]);
        assert_eq!(ticks(&axis(1.0), 6), ["0", "1"]);
        assert_eq!(ticks(&axis(6.0), 10), ["0", "1", "2", "3", "4", "5", "6"]);
    }

    fn labels(axis: &TimeAxis, apart: f64) -> Vec<String> {
        axis.ticks(apart).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn logarithmic_time_has_round_moments() {
        let axis = TimeAxis::logarithmic(1.0 / 1.3, 86_400.0);
        assert_eq!(labels(&axis, 0.1), ["1s", "10s", "1m", "10m", "1h", "6h", "24h"]);
        let short = TimeAxis::logarithmic(1.0, 60.0);
        assert_eq!(labels(&short, 0.1), ["1s", "3s", "5s", "10s", "30s", "1m"]);
    }

    #[test]
    fn linear_time_has_even_steps() {
        let axis = TimeAxis::linear(10_800.0);
        assert_eq!(labels(&axis, 0.1), ["0s", "30m", "1h", "1h 30m", "2h", "2h 30m", "3h"]);
        assert_eq!(axis.share(5_400.0), 0.5);
    }

    #[test]
    fn logarithmic_time_has_equal_lengths_for_equal_ratios() {
        let axis = TimeAxis::logarithmic(1.0, 10_000.0);
        let shares = [0.5, 1.0, 10.0, 100.0, 10_000.0, 20_000.0].map(|seconds| axis.share(seconds));
        assert_eq!(shares, [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
        assert!(!axis.shows(0.5) && axis.shows(1.0) && !axis.shows(20_000.0));
        assert_eq!([0.0, 0.5, 1.0].map(|share| axis.at(share).round()), [1.0, 100.0, 10_000.0]);
        assert_eq!(TimeAxis::linear(10.0).at(0.5), 5.0);
    }

    #[test]
    fn time_before_now_ends_on_the_right() {
        let axis = TimeAxis::ago(10_800.0);
        assert_eq!([10_800.0, 2_700.0, 0.0].map(|seconds| axis.map(&seconds, (100, 500))), [100, 400, 500]);
        let labels: Vec<_> = axis.key_points(BoldPoints(8)).iter().map(|ago| axis.format_ext(ago)).collect();
        assert_eq!(labels, ["now", "30m", "1h", "1h 30m", "2h", "2h 30m", "3h"]);
    }
}
