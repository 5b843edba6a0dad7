//! Tests for the list of subcommands, and for the tip about a flag or file that belongs to another subcommand.

use crate::support::*;

const SIMULATE: &str = "Simulate a day of failures and retries on a virtual clock";
const REPLAY: &str = "Show what the retry handler does with recorded messages";
const SCHEDULE: &str = "Print when and how often a policy retries an event";
const PLAN: &str = "Find the cheapest policy that recovers from an outage in a given time";
const CONTENTION: &str = "Compare backoff strategies for clients that compete for one database row";

/// Asserts that the command fails with this problem and these tips. Each tip has two parts: a hint, such as
/// `simulate takes --chaos`, and the subcommand's description.
fn assert_tips(line: &str, problem: &str, tips: &[(&str, &str)]) {
    let tips: String = tips
        .iter()
        .map(|(tip, about)| format!("\n  tip: 'comeback {}: {about}", tip.replacen(' ', "' ", 1)))
        .collect();
    assert_refused(line, &format!("error: {problem}\n{tips}\n\nUsage: "));
}

fn assert_unexpected(line: &str, argument: &str, tips: &[(&str, &str)]) {
    assert_tips(line, &format!("unexpected argument '{argument}' found"), tips);
}

#[test]
fn replay_without_a_file_names_the_simulation() {
    let problem = "the following required arguments were not provided:\n  <FILE>...";
    assert_tips("replay", problem, &[("simulate takes no file", SIMULATE)]);
    assert_unexpected("replay --chaos --seeds=7", "--chaos", &[("simulate takes --chaos", SIMULATE)]);
}

#[test]
fn a_flag_of_the_study_names_the_study() {
    for flag in ["--clients", "--strategy", "--runs", "--reference"] {
        let tip = [(&*format!("contention takes {flag}"), CONTENTION)];
        assert_unexpected(&format!("simulate --json {flag} 50"), flag, &tip);
        assert_unexpected(&format!("simulate {flag}=50"), flag, &tip);
    }
    let takers = [
        ("schedule takes --plot", SCHEDULE),
        ("plan takes --plot", PLAN),
        ("contention takes --plot", CONTENTION),
    ];
    assert_unexpected("simulate --plot out/", "--plot", &takers);
}

#[test]
fn recorded_events_and_simulations_name_each_other() {
    assert_unexpected(
        "replay --outage 7h events/not-json.json",
        "--outage",
        &[("simulate takes --outage", SIMULATE), ("plan takes --outage", PLAN)],
    );
    let report = [("simulate takes --report", SIMULATE)];
    assert_unexpected("replay --report never.html sample.json", "--report", &report);
    let at = [("replay takes --at", REPLAY)];
    assert_unexpected("simulate --at 2026-09-14T15:46:54Z --json", "--at", &at);
    let file = [("replay takes a file", REPLAY)];
    assert_unexpected("simulate events/first-failure.json", "events/first-failure.json", &file);
}

#[test]
fn a_surplus_argument_is_answered_with_those_accepted() {
    let trace = "Show the timeline of one event: its failures, waits and retries";
    assert_unexpected("trace key-1 key-2", "key-2", &[("trace takes only KEY|REQUEST_ID", trace)]);
    assert_refused("status orders", "error: unexpected argument 'orders' found\n\nUsage: ");
}

#[test]
fn an_argument_of_no_subcommand_has_no_tip() {
    assert_refused("simulate --gremlins", "error: unexpected argument '--gremlins' found\n\nUsage: ");
}

#[test]
fn help_of_simulate_shows_eight_flags_first() {
    let command_line = comeback::command_line();
    let simulate = command_line.find_subcommand("simulate").expect("it is a command");
    let all = simulate.get_opts().filter_map(clap::Arg::get_long).count();
    let help = printed("simulate --help");
    let (_, help) = help.split_once("\nOptions:\n").expect("a part without a name");
    let (first, help) = help.split_once("\nFaults:\n").expect("a part for faults");
    let (faults, help) = help.split_once("\nMore:\n").expect("a part for the rest");
    let (more, _) = help.split_once("\nExamples:\n").expect("examples");
    // Descriptions also mention flags, but are indented further.
    let flags = |part: &str| -> Vec<String> {
        let lines = part.lines().filter(|line| line.starts_with("      --"));
        let names = lines.map(|line| line.trim_start_matches([' ', '-']).split([' ', '[']).next());
        names.map(|name| name.unwrap_or_default().to_owned()).collect()
    };
    let [first, faults, more] = [flags(first), flags(faults), flags(more)];
    assert_eq!(first, ["events", "outage", "target", "max-age", "max-backoff", "jitter", "report", "json"]);
    assert_eq!(faults, ["chaos", "fault", "seeds", "poison", "flapping", "hang", "capacity"]);
    assert_eq!(first.len() + faults.len() + more.len(), all, "{more:?}");
}

#[cfg(feature = "operate")]
#[test]
fn help_is_short_where_it_is_read_first() {
    let command_line = comeback::command_line();
    let mut commands: Vec<&clap::Command> = command_line.get_subcommands().collect();
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let name = command.get_name();
        let about = command.get_about().expect("it says what it does").to_string();
        assert!(about.len() <= 86 && !about.ends_with('.'), "{name} fits no line of the list: {about}");
        let is_first = |arg: &&clap::Arg| arg.get_help_heading().is_none() && !arg.is_hide_set();
        let first = command.get_opts().filter(is_first).count();
        assert!(first <= 8, "{name} shows {first} options first");
    }
}

#[test]
fn help_shows_examples() {
    for (command, example) in [
        ("simulate", "comeback simulate --chaos"),
        ("replay", "comeback replay events/*.json"),
        ("replay", "cargo lambda invoke"),
        ("schedule", "comeback schedule --max-age"),
        ("plan", "comeback plan --outage"),
        ("contention", "comeback contention --plot"),
    ] {
        let text = printed(&format!("{command} --help"));
        assert!(text.contains("Examples:") && text.contains(example), "{text}");
        let simulated = text.contains("TargetDown");
        assert_eq!(simulated, ["simulate", "schedule"].contains(&command), "{text}");
    }
}
