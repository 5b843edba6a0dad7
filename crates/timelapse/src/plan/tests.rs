use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::figures::Percentiles;

const TIME: Duration = Duration::from_secs(30);

fn goal() -> Goal {
    Goal { recover_within: TIME, ..Goal::default() }
}

fn candidate(p99_seconds: Option<u64>, retries: u64, usd: u64) -> Candidate {
    let recovery = |seconds| Percentiles { p50: 0, p99: seconds * 1_000, max: seconds * 1_000 };
    Candidate {
        max_backoff: 60,
        jitter: "full",
        base_backoff: 1,
        recovery_ms: p99_seconds.map(recovery),
        retries_per_event: retries as f64,
        peak_retries_per_second: 0.0,
        peak_load: 0.0,
        waiting: 0.0,
        usd_per_million_events: usd as f64,
        maximum_concurrency: 2,
        dead_lettered: BTreeMap::new(),
    }
}

fn dead_lettering(reason: &'static str, events: usize) -> Candidate {
    Candidate { dead_lettered: BTreeMap::from([(reason, events)]), ..candidate(Some(10), 1, 1) }
}

/// Generates grids of candidate policies, many of them with equal figures.
fn grids() -> impl Strategy<Value = Vec<Candidate>> {
    let figures = (proptest::option::weighted(0.9, 1..60u64), 1..9u64, 1..9u64);
    let any = (figures, 0..8usize, 1..1_100u64).prop_map(|((p99, retries, usd), dead_lettered, pollers)| {
        Candidate {
            maximum_concurrency: pollers,
            dead_lettered: (dead_lettered == 0).then_some(("max_age", 1)).into_iter().collect(),
            ..candidate(p99, retries, usd)
        }
    });
    proptest::collection::vec(any, 0..40)
}

proptest! {
    #[test]
    fn no_lossless_policy_beats_one_in_the_table(grid in grids()) {
        let unbeaten = unbeaten(&grid);
        for one in &unbeaten {
            prop_assert!(one.loses_nothing());
            for other in grid.iter().filter(|other| other.loses_nothing()) {
                let [one, other] = [*one, other].map(|it| (p99(it), it.retries_per_event, it.usd_per_million_events));
                let better = other.0 < one.0 || other.1 < one.1 || other.2 < one.2;
                let worse = other.0 > one.0 || other.1 > one.1 || other.2 > one.2;
                prop_assert!(!better || worse, "{one:?} is beaten by {other:?}");
            }
        }
        prop_assert!(unbeaten.is_sorted_by(|one, other| p99(one) <= p99(other)));
        for left_out in grid.iter().filter(|it| it.loses_nothing() && !unbeaten.contains(it)) {
            let explains = |it: &&Candidate| beats(it, left_out) || what_counts(it) == what_counts(left_out);
            prop_assert!(unbeaten.iter().any(explains), "{left_out:?} is missing");
        }
    }

    #[test]
    fn cheapest_policy_meets_the_goal(grid in grids()) {
        let meets = |it: &Candidate| {
            it.dead_lettered.is_empty() && it.maximum_concurrency <= 1_000 && p99(it) <= 30_000.0
        };
        let usd = |it: &Candidate| it.usd_per_million_events;
        let least = grid.iter().filter(|it| meets(it)).map(usd).min_by(f64::total_cmp);
        let chosen = cheapest(&grid, TIME);
        prop_assert!(chosen.is_none_or(|it| meets(it) && unbeaten(&grid).contains(&it)), "{chosen:?}");
        prop_assert_eq!(chosen.map(usd), least);
        prop_assert!(chosen.is_some() || grid.is_empty() || !limits(&grid, &goal()).is_empty());
    }
}

#[test]
fn limit_of_the_fast_policies_is_named() {
    let slow = candidate(Some(31), 1, 1);
    let busy = |pollers| Candidate { maximum_concurrency: pollers, ..candidate(Some(10), 1, 1) };
    let [few, many] = [dead_lettering("max_retries", 1), dead_lettering("max_retries", 2)];
    let old = dead_lettering("max_age", 3);
    let limit = |limit, policy: &Candidate| Limit { limit, policy: policy.clone() };
    let [retries, age] = [limit(LimitedBy::MaxRetries, &few), limit(LimitedBy::MaxAge, &old)];
    for (grid, expected) in [
        (vec![slow.clone(), candidate(Some(40), 1, 1)], vec![limit(LimitedBy::Waits, &slow)]),
        (vec![slow.clone(), many, few.clone()], vec![retries.clone()]),
        (vec![slow.clone(), busy(1_002), busy(1_001)], vec![limit(LimitedBy::Throughput, &busy(1_001))]),
        (vec![few.clone(), old.clone(), slow], vec![age, retries]),
    ] {
        assert_eq!(cheapest(&grid, TIME), None);
        assert_eq!(limits(&grid, &goal()), expected);
    }
}

/// If the capacity alone makes a goal of 30 s impossible, the plan names the capacity as the limit. Twice the usual
/// rate is just enough: 99 % of the outage's events then take 29.7 s.
#[test]
fn capacity_is_named_before_the_waits() {
    let slow = candidate(Some(31), 1, 1);
    for (capacity, limit) in [(2.0, LimitedBy::Waits), (1.9, LimitedBy::Capacity)] {
        let goal = Goal { outage: Duration::from_secs(60), capacity: Some(capacity), ..goal() };
        let expected = vec![Limit { limit, policy: slow.clone() }];
        assert_eq!(limits(std::slice::from_ref(&slow), &goal), expected);
    }
    let half = Goal { outage: Duration::from_secs(60), capacity: Some(0.5), ..goal() };
    let default = Settings::default();
    let soon = Candidate {
        max_backoff: default.max_backoff,
        base_backoff: default.base_backoff,
        ..candidate(Some(29), 1, 1)
    };
    let plan = PolicyPlan::chosen(half, vec![dead_lettering("max_retries", 1), soon.clone()]);
    assert_eq!(plan.cheapest, None, "whatever a run says");
    assert_eq!(plan.limits, [Limit { limit: LimitedBy::Capacity, policy: soon }]);
}
