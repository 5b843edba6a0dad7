use serde::Serialize;

/// Median, 99th percentile and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Half of the values are at most this.
    pub p50: u64,
    /// 99 in 100 values are at most this.
    pub p99: u64,
    /// The largest value.
    pub max: u64,
}

impl Percentiles {
    /// By nearest rank, so that each is one of the values; `None` if there are none.
    ///
    /// ```
    /// use comeback_timelapse::Percentiles;
    ///
    /// let percentiles = Percentiles::of((1..=200).collect());
    /// assert_eq!(percentiles, Some(Percentiles { p50: 100, p99: 198, max: 200 }));
    /// ```
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let rank = |percent| nearest_rank(&values, percent);
        Some(Self { p50: rank(50)?, p99: rank(99)?, max: rank(100)? })
    }
}

/// The value that this many percent of the values are at most; `None` if there are none.
pub(crate) fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::Percentiles;

    #[test]
    fn are_values_at_their_nearest_rank() {
        let of = |values: &[u64]| Percentiles::of(values.to_vec()).map(|p| (p.p50, p.p99, p.max));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some((7, 7, 7)));
        assert_eq!(of(&[9, 1]), Some((1, 9, 9)));
        assert_eq!(of(&[3, 1, 2]), Some((2, 3, 3)));
        assert_eq!(of(&(1..=100).rev().collect::<Vec<_>>()), Some((50, 99, 100)));
        assert_eq!(of(&(1..=101).collect::<Vec<_>>()), Some((51, 100, 101)));
    }
}
