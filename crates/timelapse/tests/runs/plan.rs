//! Tests for the content of a plan, and for its reproducibility.

use std::time::Duration;

use comeback_engine::{Policy, Settings};
use comeback_timelapse::{Candidate, Goal, PolicyPlan, RunError, Scenario, TARGET_ARN, run};

use crate::policy_table::{self, DAY, OUTAGES, Outage, POLICIES, failing, quiet};

fn policy() -> Policy {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
    Policy::new(settings).expect("a valid policy")
}

/// Returns a goal that allows two days for recovery. Its plan compares only a few policies: the default policy, and
/// those with the longest `MAX_BACKOFF`.
fn goal() -> Goal {
    Goal {
        outage: Duration::from_secs(120),
        recover_within: Duration::from_secs(2 * 86_400),
        ..Goal::default()
    }
}

fn plan(goal: &Goal) -> PolicyPlan {
    PolicyPlan::of(goal, &policy(), &|| {}).expect("a valid goal")
}

/// A plan's figures for the default policy must equal those of `comeback simulate`.
#[test]
fn figures_of_a_policy_match_its_own_run() {
    let plan = plan(&goal());
    let scenario = Scenario {
        outage: goal().outage,
        arrival_spread: goal().outage,
        duration: Duration::from_secs(30 * 3_600),
        ..Scenario::default()
    };
    let summary = run(&scenario, &policy().into(), &mut ()).unwrap();
    let Candidate { recovery_ms, retries_per_event, peak_load, .. } = plan.defaults;
    assert_eq!((recovery_ms, retries_per_event), (summary.recovery_delay_ms, summary.retries as f64 / 1e3));
    let busiest = summary.minutes[2..].iter().map(|minute| minute.retries).max().unwrap();
    // 1,000 rehearsed events stand for 1,200 events. A minute has 60 s, and the usual rate is 10 events a second.
    assert!((peak_load - f64::from(busiest) * 1.2 / 60.0 / 10.0).abs() < 1e-9);
}

#[test]
fn plan_is_the_same_on_any_number_of_cores() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let goal = Goal { never_succeed: 0.01, ..goal() };
        serde_json::to_string(&pool.install(|| plan(&goal))).unwrap()
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn events_that_never_succeed_cost_and_wait() {
    let plans = [0.0, 0.05].map(|never_succeed| plan(&Goal { never_succeed, ..goal() }));
    let [none, some] = plans.map(|plan| (plan.cheapest.expect("it is met"), plan.defaults));
    assert!(some.0.usd_per_million_events > none.0.usd_per_million_events);
    assert!((1_150.0..=1_200.0).contains(&none.1.waiting), "10 a second for two minutes: {}", none.1.waiting);
    assert!(some.1.waiting > 10.0 * none.1.waiting, "half an event a second waits for most of a day");
}

#[test]
fn plan_lists_everything_refused() {
    let nothing = Goal {
        outage: Duration::ZERO,
        events_per_second: 0.0,
        recover_within: Duration::from_secs(14 * 86_400 + 1),
        never_succeed: 1.0,
        capacity: Some(0.0),
        ..Goal::default()
    };
    let error = PolicyPlan::of(&nothing, &policy(), &|| {}).unwrap_err();
    let expected = "outage is 0ns; it must be 1 s to 14 days\n\
        rate is 0; it must be more than 0\n\
        recover-within is 1209601s; it must be 1 s to 14 days\n\
        never-succeed is 1; it must be at least 0 and less than 1\n\
        capacity is 0; it must be 0.1 to 1000";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, RunError::Refused(_)));
}

/// Recomputes three of the page's rows for the default policy, and counts the rows of every policy.
#[test]
fn page_shows_the_defaults_beside_other_policies() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plan.md");
    let page = std::fs::read_to_string(page).expect("the page can be read");
    let shows = |line: &str| assert!(page.lines().any(|shown| shown == line), "not on the page: {line}");
    let (default, numbers) = POLICIES[0];
    let Settings { base_backoff, max_backoff, max_retries, .. } = Settings::default();
    assert_eq!(numbers, [base_backoff, max_backoff, max_retries]);
    [Outage::COLUMNS, quiet::COLUMNS, failing::COLUMNS].into_iter().for_each(shows);
    shows(&OUTAGES[0].row(default, &policy_table::settings(numbers, Outage::MAX_AGE)));
    shows(&quiet::row(default, &policy_table::settings(numbers, Outage::MAX_AGE)));
    shows(&failing::row(1, default, &policy_table::settings(numbers, DAY)));
    for (policy, _) in POLICIES {
        let rows = page.matches(&format!("| {policy} |")).count();
        assert_eq!(rows, OUTAGES.len() + 3, "rows of {policy}");
    }
}
