use std::time::Duration;

/// `DelaySeconds` at most. Source: SQS quotas, "Message delay".
const LONGEST_HOP: u64 = 900;

/// How many hops a wait takes; 1 at least.
pub(super) const fn hops(left: Duration) -> u64 {
    let hops = whole_seconds(left).div_ceil(LONGEST_HOP);
    if hops == 0 { 1 } else { hops }
}

/// The first of the hops that a wait takes, all about as long: ⌈left / ⌈left / 900⌉⌉ seconds, 1 to 900.
pub(super) fn hop(left: Duration) -> Duration {
    Duration::from_secs(whole_seconds(left).div_ceil(hops(left)).max(1))
}

/// A part of a second counts as a whole one, so that no hop ends early.
const fn whole_seconds(left: Duration) -> u64 {
    left.as_secs() + (left.subsec_nanos() > 0) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wait_is_cut_into_equal_hops() {
        let millis =
            |millis| (hops(Duration::from_millis(millis)), hop(Duration::from_millis(millis)).as_secs());
        assert_eq!(millis(0), (1, 1));
        assert_eq!(millis(1), (1, 1));
        assert_eq!(millis(1_000), (1, 1));
        assert_eq!(millis(900_000), (1, 900));
        assert_eq!(millis(900_001), (2, 451));
        assert_eq!(millis(43_170_000), (48, 900));
    }

    proptest! {
        /// However many hops, the wait ends within a second after its end, and takes no more hops than it must.
        #[test]
        fn hops_end_where_the_wait_ends(wait in 1..20_000_000u64) {
            let (mut at, mut made) = (0, 0);
            while at < wait {
                let left = Duration::from_millis(wait - at);
                let hop = hop(left);
                prop_assert!((1..=900).contains(&hop.as_secs()) && hop.subsec_nanos() == 0);
                at += hop.as_secs() * 1_000;
                made += 1;
            }
            prop_assert!(at < wait + 1_000, "{} ms late", at - wait);
            prop_assert!(made <= wait.div_ceil(900_000), "{made} hops");
        }
    }
}
