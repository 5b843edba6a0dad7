use std::ops::Range;

use indicatif::HumanCount;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

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
        text(*value)
    }
}

/// The label of a tick: a short number that arithmetic has left a little off, such as
/// 0.30000000000000004.
pub(crate) fn text(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6 + 0.0;
    if rounded < 1_000.0 { rounded.to_string() } else { HumanCount(rounded as u64).to_string() }
}

#[cfg(test)]
mod tests {
    use plotters::coord::ranged1d::BoldPoints;

    use super::*;

    fn ticks(axis: &CountAxis, most: usize) -> Vec<String> {
        axis.key_points(BoldPoints(most)).iter().map(|tick| axis.format_ext(tick)).collect()
    }

    #[test]
    fn a_logarithmic_axis_has_round_ticks() {
        let axis = CountAxis::over([0.4, 101.0].into_iter(), true);
        assert_eq!(ticks(&axis, 10), ["0.5", "1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(ticks(&axis, 5), ["1", "10", "100"]);
        let wide = CountAxis::over([10_000.0, 1_000_000.0].into_iter(), true);
        assert_eq!(ticks(&wide, 4), ["10,000", "100,000", "1,000,000"]);
    }

    #[test]
    fn equal_ratios_are_equal_lengths() {
        let axis = CountAxis::Log(1.0..10_000.0);
        assert_eq!([1.0, 10.0, 100.0, 10_000.0].map(|value| axis.map(&value, (400, 0))), [400, 300, 200, 0]);
    }

    #[test]
    fn a_linear_axis_starts_at_0() {
        let axis = CountAxis::over([100.0, 190.0].into_iter(), false);
        assert_eq!(axis.range().start, 0.0);
        assert_eq!(axis.map(&0.0, (0, 100)), 0);
        assert_eq!(ticks(&axis, 6)[..3], ["0", "50", "100"]);
    }
}
