//! Tests that `--json` works as `docs/json.md` says: every run prints one object, with the documented members.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::*;

/// The members of each command's JSON object: the required ones, then the optional ones.
fn documented() -> BTreeMap<String, [BTreeSet<String>; 2]> {
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect();
    let page = read("docs/json.md");
    let rows =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | `"));
    let rows = rows.map(|(command, members)| {
        let (always, sometimes) = members.split_once("; with").unwrap_or((members, ""));
        (command.to_owned(), [names(&format!("`{always}")), names(sometimes)])
    });
    rows.collect()
}

#[cfg(feature = "operate")]
fn with_json(command: &clap::Command, above: &str, found: &mut BTreeSet<String>) {
    for subcommand in command.get_subcommands() {
        let name = format!("{above}{}", subcommand.get_name());
        if subcommand.get_opts().any(|flag| flag.get_long() == Some("json")) {
            found.insert(name.clone());
        }
        with_json(subcommand, &format!("{name} "), found);
    }
}

#[cfg(feature = "operate")]
#[test]
fn the_page_has_every_command_with_json_and_no_other() {
    let mut all = BTreeSet::new();
    with_json(&comeback::command_line(), "", &mut all);
    let documented = documented();
    let rows = documented.keys().map(|row| row.split(" --").next().unwrap_or_default().to_owned());
    assert_eq!(rows.collect::<BTreeSet<_>>(), all);
    assert!(all.contains("dead list") && all.contains("schedule"), "{all:?}");
}

#[test]
fn rehearsals_print_one_object_with_the_members_of_the_page() {
    let documented = documented();
    for (row, line) in [
        ("simulate", "simulate --events 5"),
        ("simulate", "simulate --events 5 --fault invoke_answer_lost=1@0..1m"),
        ("simulate", "simulate --events 5 --target orders --target export"),
        ("simulate --seeds", "simulate --events 5 --seeds 2 --chaos"),
        ("replay", "replay events/first-failure.json events/not-json.json"),
        ("schedule", "schedule --events 5 --max-retries 3 --rate 10/s"),
        ("plan", "plan --outage 2m --recover-within 2d"),
        ("contention", "contention --clients 5 --runs 1"),
    ] {
        let object = json(line);
        let printed: BTreeSet<String> = object.as_object().expect("an object").keys().cloned().collect();
        let [always, sometimes] = &documented[row];
        let all: BTreeSet<_> = always.union(sometimes).cloned().collect();
        assert!(printed.is_superset(always) && printed.is_subset(&all), "{line}: {printed:?}");
    }
}

#[test]
fn a_rehearsal_that_fails_prints_its_error() {
    for (line, code) in [
        ("replay nowhere.json", 1),
        ("schedule --events 0", 2),
        ("simulate --max-age 1s", 2),
        ("schedule --events 5 --max-retries 3 --plot /dev/null/a/", 1),
        ("plan --outage 2m --recover-within 2d --plot /dev/null/a/", 1),
        ("contention --clients 2 --runs 1 --csv /dev/null/a.csv", 1),
    ] {
        let output = comeback(&format!("{line} --json"));
        assert_eq!(output.status.code(), Some(code), "{line}");
        let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let (error, stderr) =
            (object["error"].as_str().expect("why"), String::from_utf8_lossy(&output.stderr));
        assert_eq!(stderr, format!("error: {error}\n"), "{line}");
    }
}

#[test]
fn a_plan_without_a_policy_prints_the_reasons() {
    let output = comeback("plan --outage 30m --max-age 5m --recover-within 12h --rate 1/h --json");
    assert_eq!(output.status.code(), Some(3));
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(object["limited_by"][0].as_str().is_some_and(|why| why.starts_with("MAX_AGE: ")), "{object}");
    assert!(object["cheapest"].is_null() && object.get("error").is_none(), "{object}");
}
