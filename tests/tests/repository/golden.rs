//! Tests that the decisions of a few simulations and replays, and the figures of the contention study, stay the same,
//! byte for byte. After an intended change, rewrite the replays with `UPDATE_EXPECT=1 cargo test -p comeback-tests
//! --test repository golden`.

#[path = "../../../crates/timelapse/tests/runs/writing.rs"]
mod writing;

use std::fmt::Debug;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use comeback_contention::{Point, Strategy, Study};
use comeback_engine::{HideUpTo, Jitter, Policies, Policy, Settings, Style};
use comeback_tests::root;
use comeback_timelapse::{MakeOperators, Scenario, SimulatedTarget, TARGET_ARN, Trace, run};
use expect_test::{ExpectFile, expect_file};

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// A policy whose waits range from a second to the longest time that SQS can hide a message.
fn long_waits() -> Settings {
    Settings { max_retries: 185, base_backoff: 1, max_backoff: 43_170, ..Settings::default() }
}

fn check(expect: &ExpectFile, scenario: &Scenario, settings: Settings) {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
    check_under(expect, scenario, &Policy::new(settings).expect("a valid policy").into());
}

fn check_under(expect: &ExpectFile, scenario: &Scenario, policies: &Policies) {
    let mut trace = Trace::default();
    let summary = run(scenario, policies, &mut trace).expect("a valid scenario");
    let summary = serde_json::to_string_pretty(&summary).expect("a summary is plain JSON");
    expect.assert_eq(&format!("{}{summary}\n", trace.text()));
}

#[test]
fn outage_with_full_jitter() {
    check(
        &expect_file!["../../golden/replays/outage-full-jitter.txt"],
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
        ..long_waits()
    };
    check(&expect_file!["../../golden/replays/decorrelated-inline-three-retries.txt"], &scenario, settings);
}

#[test]
fn random_failures_at_the_in_flight_limit() {
    let scenario = Scenario {
        events: 12,
        outage: minutes(2),
        arrival_spread: minutes(2),
        failure_rate: 0.85,
        in_flight_limit: 4,
        duration: minutes(120),
        ..Scenario::default()
    };
    let settings = Settings { jitter: Jitter::None, max_age: 1_800, ..long_waits() };
    check(&expect_file!["../../golden/replays/no-jitter-in-flight-limit.txt"], &scenario, settings);
}

#[test]
fn outage_with_moves_only() {
    let scenario = Scenario {
        events: 6,
        outage: minutes(60),
        arrival_spread: minutes(10),
        duration: minutes(180),
        ..Scenario::default()
    };
    let settings = Settings { hide_up_to: HideUpTo::UpTo(0), ..long_waits() };
    check(&expect_file!["../../golden/replays/outage-all-moved.txt"], &scenario, settings);
}

#[test]
fn outage_with_retry_after() {
    let scenario = Scenario {
        events: 10,
        outage: minutes(60),
        arrival_spread: minutes(20),
        duration: minutes(180),
        retry_after: Some(minutes(15)),
        ..Scenario::default()
    };
    check(&expect_file!["../../golden/replays/outage-retry-after.txt"], &scenario, long_waits());
}

/// Operators who write to the pauses parameter. Each entry gives a minute of the run and the members to write then.
fn writing(members: &[(u64, &str)]) -> Option<MakeOperators> {
    let texts = members.iter().map(|(at, members)| (minutes(*at), format!(r#"{{"v":1,{members}}}"#)));
    Some(writing::writing(texts.collect()))
}

#[test]
fn outage_with_a_pause() {
    let scenario = Scenario {
        events: 8,
        outage: minutes(60),
        arrival_spread: minutes(40),
        duration: minutes(240),
        operators: writing(&[
            (20, r#""pauses":[{"target":"*","from":1767226800,"until":null,"spread":1800}]"#),
            (80, r#""pauses":[{"target":"*","from":1767226800,"until":1767230400,"spread":1800}]"#),
        ]),
        ..Scenario::default()
    };
    check(&expect_file!["../../golden/replays/outage-paused.txt"], &scenario, long_waits());
}

#[test]
fn outage_with_a_retry_request() {
    let scenario = Scenario {
        events: 6,
        outage: minutes(150),
        arrival_spread: minutes(40),
        duration: minutes(360),
        operators: writing(&[(
            152,
            r#""pauses":[],"retries":[{"target":"*","at":1767234720,"within":300,"until":1767243488}]"#,
        )]),
        ..Scenario::default()
    };
    // The handler checks a delayed message every 15 minutes, but a hidden message only when its visibility timeout
    // ends.
    let settings = Settings { hide_up_to: HideUpTo::UpTo(0), ..Settings::default() };
    check(&expect_file!["../../golden/replays/outage-retried-now.txt"], &scenario, settings);
}

#[test]
fn outage_of_two_functions_with_a_policy_each() {
    let target = |name: &str, share, outage| SimulatedTarget { name: name.into(), share, outage };
    let targets = vec![target("orders", 0.7, None), target("export-eu", 0.3, Some(minutes(90)))];
    let arns: Vec<String> = targets.iter().map(SimulatedTarget::arn).collect();
    let policies = Policies::from_variables(|name| match name {
        "TARGET_FUNCTIONS" => Some(arns.join(",")),
        "POLICIES" => {
            Some("orders MAX_RETRIES=6 ENVELOPE=inline; export-* MAX_AGE=3h BACKOFFS=20s,5m,30m".into())
        }
        _ => None,
    })
    .expect("valid policies");
    let scenario = Scenario {
        events: 8,
        targets,
        outage: minutes(10),
        arrival_spread: minutes(12),
        duration: minutes(240),
        ..Scenario::default()
    };
    check_under(&expect_file!["../../golden/replays/outage-two-functions.txt"], &scenario, &policies);
}

/// Arguments for the contention study's published Python program, and its output for each.
const FIGURES: &str = include_str!("../../contention/reference_figures.txt");

fn figures() -> Vec<(&'static str, &'static str)> {
    let lines = FIGURES.lines().filter(|line| !line.starts_with('#'));
    let figures: Vec<_> =
        lines.map(|line| line.split_once('\t').expect("arguments, a tab, the output")).collect();
    assert_eq!(figures.len(), 7, "the figures were not read");
    figures
}

/// Values of a flag in a command line.
fn values<T: FromStr<Err: Debug>>(arguments: &str, flag: &str) -> Vec<T> {
    let mut words = arguments.split_whitespace();
    let list =
        words.find(|word| *word == flag).and_then(|_| words.next()).expect("every line has every flag");
    list.split(',').map(|value| value.parse().expect("a value the Python program took")).collect()
}

fn study(arguments: &str) -> Study {
    let [runs] = values(arguments, "--runs")[..] else { panic!("one number of runs") };
    let [seed] = values(arguments, "--seed")[..] else { panic!("one seed") };
    let strategies: Vec<Strategy> = values(arguments, "--strategy");
    let of = |clients| strategies.iter().map(move |&strategy| Point { clients, strategy, runs });
    let points = values(arguments, "--clients").into_iter().flat_map(of).collect();
    Study::new(points, seed, true).expect("a valid study")
}

#[test]
fn contention_study_gives_the_python_figures() {
    for (arguments, figures) in figures() {
        let report = study(arguments).run(&|_| {});
        assert_eq!(serde_json::to_string(&report).expect("plain JSON"), figures, "{arguments}");
    }
}

#[test]
fn python_program_still_gives_these_figures() {
    for (arguments, figures) in figures() {
        let output = Command::new("python3")
            .arg(root().join("tests/contention/reference_model.py"))
            .args(arguments.split_whitespace())
            .output()
            .expect("python3 is installed");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed.trim_end(), figures, "{arguments}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
