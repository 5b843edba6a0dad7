use comeback_engine::{BACKOFF_RANGE, Jitter, Settings};

use super::goal::Goal;

/// `BASE_BACKOFF` in seconds. A longer one would hold up events that fail by themselves, outside of any outage.
const BASES: [u64; 3] = [1, 10, 60];
/// `MAX_BACKOFF` in seconds; the last is the default, and the longest there can be.
const CAPS: [u64; 18] = [
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1_200,
    1_800,
    2_700,
    3_600,
    2 * 3_600,
    6 * 3_600,
    *BACKOFF_RANGE.end(),
];
/// Those that spread retries. The events of a plan arrive evenly, which hides what is wrong with `none`: events that
/// have failed together would come back together every time.
const JITTERS: [Jitter; 3] = [Jitter::Full, Jitter::Equal, Jitter::Decorrelated];
/// No cap is shorter than this part of the goal, if another is not: it would only cost more.
const SHORTEST: u32 = 2;

/// The policies that are compared for a goal, by cap, then jitter, then base.
pub(super) fn of(goal: &Goal, settings: &Settings) -> Vec<Settings> {
    let shortest = (goal.recover_within / SHORTEST).as_secs();
    let first = CAPS.iter().rposition(|&cap| cap <= shortest).unwrap_or(0);
    let mut grid = Vec::new();
    for &max_backoff in &CAPS[first..] {
        for jitter in JITTERS {
            for base_backoff in BASES.into_iter().filter(|&base| base <= max_backoff) {
                grid.push(Settings { base_backoff, max_backoff, jitter, ..settings.clone() });
            }
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::Policy;

    use super::*;

    #[test]
    fn it_reaches_from_half_of_the_goal_to_the_longest_cap() {
        for (goal, shortest) in [(1, 1), (59, 15), (60, 30), (1_800, 900), (86_400 * 14, 43_170)] {
            let goal = Goal { recover_within: Duration::from_secs(goal), ..Goal::default() };
            let grid = of(&goal, &Settings::default());
            let caps: Vec<u64> = grid.iter().map(|settings| settings.max_backoff).collect();
            assert_eq!((caps.first(), caps.last()), (Some(&shortest), Some(&43_170)), "{goal:?}");
            assert!(grid.contains(&Settings::default()), "it has the defaults");
            assert!(grid.into_iter().all(|settings| Policy::new(settings).is_ok()));
        }
    }
}
