//! Every decision of a few runs, byte for byte: a change of any rule shows here as a change of text.
//! Once you have checked that it is the change you meant, rewrite the files with
//! `UPDATE_EXPECT=1 cargo test -p comeback-tests --test replay_golden`.

use std::time::Duration;

use comeback_engine::{HideUpTo, Jitter, Policy, Settings, Style};
use comeback_timelapse::{OperatorPause, Scenario, TARGET_ARN, Trace, run};
use expect_test::{ExpectFile, expect_file};

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

fn check(expect: &ExpectFile, scenario: &Scenario, settings: Settings) {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
    let policy = Policy::new(settings).expect("a valid policy");
    let mut trace = Trace::default();
    let summary = run(scenario, &policy, &mut trace).expect("a valid scenario");
    let summary = serde_json::to_string_pretty(&summary).expect("a summary is plain JSON");
    expect.assert_eq(&format!("{}{summary}\n", trace.text()));
}

#[test]
fn an_outage_with_full_jitter() {
    check(
        &expect_file!["../golden/replays/outage-full-jitter.txt"],
        &Scenario { events: 20, ..Scenario::default() },
        Settings::default(),
    );
}

#[test]
fn three_retries_with_decorrelated_jitter_inline() {
    let scenario = Scenario {
        events: 20,
        outage: minutes(10),
        arrival_spread: minutes(12),
        duration: minutes(60),
        ..Scenario::default()
    };
    let settings = Settings {
        jitter: Jitter::Decorrelated,
        envelope: Style::Inline,
        max_retries: 3,
        base_backoff: 60,
        ..Settings::default()
    };
    check(&expect_file!["../golden/replays/decorrelated-inline-three-retries.txt"], &scenario, settings);
}

#[test]
fn failures_at_random_at_the_in_flight_limit_without_jitter() {
    let scenario = Scenario {
        events: 12,
        outage: minutes(2),
        arrival_spread: minutes(2),
        failure_rate: 0.85,
        in_flight_limit: 4,
        duration: minutes(120),
        ..Scenario::default()
    };
    let settings = Settings { jitter: Jitter::None, max_age: 1_800, ..Settings::default() };
    check(&expect_file!["../golden/replays/no-jitter-in-flight-limit.txt"], &scenario, settings);
}

#[test]
fn an_outage_whose_waits_are_all_moves() {
    let scenario = Scenario {
        events: 6,
        outage: minutes(60),
        arrival_spread: minutes(10),
        duration: minutes(180),
        ..Scenario::default()
    };
    let settings = Settings { hide_up_to: HideUpTo::UpTo(0), ..Settings::default() };
    check(&expect_file!["../golden/replays/outage-all-moved.txt"], &scenario, settings);
}

#[test]
fn an_outage_whose_target_asks_for_a_quarter_of_an_hour() {
    let scenario = Scenario {
        events: 10,
        outage: minutes(60),
        arrival_spread: minutes(20),
        duration: minutes(180),
        retry_after: Some(minutes(15)),
        ..Scenario::default()
    };
    check(&expect_file!["../golden/replays/outage-retry-after.txt"], &scenario, Settings::default());
}

#[test]
fn an_outage_in_which_the_target_is_paused() {
    let scenario = Scenario {
        events: 8,
        outage: minutes(60),
        arrival_spread: minutes(40),
        duration: minutes(240),
        pauses: vec![OperatorPause::of_all(minutes(20), minutes(60), minutes(30))],
        ..Scenario::default()
    };
    check(&expect_file!["../golden/replays/outage-paused.txt"], &scenario, Settings::default());
}
