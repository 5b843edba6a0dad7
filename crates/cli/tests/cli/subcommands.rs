//! The list of subcommands: their help, and a flag or a file of another one, refused with its name.

use crate::support::*;

const SIMULATE: &str = "Run the retry handler through a day in fast motion";
const REPLAY: &str = "Run the retry handler on recorded SQS events";
const EVENT: &str = "Print a copy of a recorded SQS event, shifted in time so that its moment is now";
const SCHEDULE: &str = "Print what a policy means: when each retry comes, and how many an event has";
const PLAN: &str = "Find the cheapest policy that recovers from an outage in a given time";
const CONTENTION: &str = "Compare backoff strategies: clients compete for one row, and back off when refused";

/// Refused with exit code 2, the problem, and these commands with what each is for.
fn assert_meant(arguments: &[&str], problem: &str, meant: &[(&str, &str)]) {
    let output = comeback(arguments);
    let (code, text) = failed(&output);
    assert_eq!(code, 2, "{text}");
    let tips: String = meant.iter().map(|(taking, about)| format!("\n  tip: {taking}: {about}")).collect();
    assert!(text.starts_with(&format!("error: {problem}\n{tips}\n\nUsage: ")), "{arguments:?}: {text}");
}

#[test]
fn replay_without_a_file_names_the_simulation() {
    assert_meant(
        &["replay"],
        "the following required arguments were not provided:\n  <FILE>...",
        &[("'comeback simulate' takes no file", SIMULATE)],
    );
    assert_meant(
        &["replay", "--chaos", "--seeds=7"],
        "unexpected argument '--chaos' found",
        &[("'comeback simulate' takes --chaos", SIMULATE)],
    );
}

#[test]
fn a_simulation_with_a_flag_of_the_study_names_the_study() {
    for flag in ["--clients", "--strategy", "--runs", "--reference"] {
        let takes = format!("'comeback contention' takes {flag}");
        let problem = format!("unexpected argument '{flag}' found");
        assert_meant(&["simulate", "--json", flag, "50"], &problem, &[(&takes, CONTENTION)]);
        assert_meant(&["simulate", &format!("{flag}=50")], &problem, &[(&takes, CONTENTION)]);
    }
    assert_meant(
        &["simulate", "--plot", "out/"],
        "unexpected argument '--plot' found",
        &[
            ("'comeback schedule' takes --plot", SCHEDULE),
            ("'comeback plan' takes --plot", PLAN),
            ("'comeback contention' takes --plot", CONTENTION),
        ],
    );
}

#[test]
fn recorded_events_and_simulations_name_each_other() {
    assert_meant(
        &["replay", "--outage", "7h", "events/not-json.json"],
        "unexpected argument '--outage' found",
        &[("'comeback simulate' takes --outage", SIMULATE), ("'comeback plan' takes --outage", PLAN)],
    );
    assert_meant(
        &["replay", "--chaos", "--seeds=7", "events/not-json.json"],
        "unexpected argument '--chaos' found",
        &[("'comeback simulate' takes --chaos", SIMULATE)],
    );
    assert_meant(
        &["replay", "--report", "never.html", "sample.json"],
        "unexpected argument '--report' found",
        &[("'comeback simulate' takes --report", SIMULATE)],
    );
    assert_meant(
        &["simulate", "--at", "2026-09-14T15:46:54Z", "--json"],
        "unexpected argument '--at' found",
        &[("'comeback replay' takes --at", REPLAY), ("'comeback event' takes --at", EVENT)],
    );
    assert_meant(
        &["simulate", "events/first-failure.json"],
        "unexpected argument 'events/first-failure.json' found",
        &[("'comeback replay' takes a file", REPLAY), ("'comeback event' takes a file", EVENT)],
    );
}

#[test]
fn what_no_subcommand_takes_is_refused_without_a_tip() {
    let output = comeback(&["simulate", "--gremlins"]);
    let (code, text) = failed(&output);
    assert_eq!(code, 2);
    assert!(text.starts_with("error: unexpected argument '--gremlins' found\n\nUsage: "), "{text}");
}

#[test]
fn help_shows_examples() {
    for (command, example) in [
        ("simulate", "comeback simulate --chaos"),
        ("replay", "comeback replay events/*.json"),
        ("event", "cargo lambda invoke"),
        ("schedule", "comeback schedule --max-age"),
        ("plan", "comeback plan --outage"),
        ("contention", "comeback contention --plot"),
    ] {
        let text = stdout(comeback(&[command, "--help"]));
        assert!(text.contains("Examples:") && text.contains(example), "{text}");
        let simulated = text.contains("fails with TargetDown");
        assert_eq!(simulated, ["simulate", "schedule"].contains(&command), "{text}");
    }
}
