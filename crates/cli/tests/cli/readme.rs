//! What the README shows of `comeback` is what it prints, and each of its commands runs.

use std::process::Command;

use serde_json::Value;

use crate::support::{comeback, repository, stdout};

fn readme() -> String {
    std::fs::read_to_string(repository().join("README.md")).expect("README.md can be read")
}

#[test]
fn each_command_of_the_readme_runs() {
    let readme = readme();
    let commands: Vec<&str> = readme
        .lines()
        .filter(|line| line.starts_with("cargo run "))
        .filter_map(|line| line.split_once(" -p comeback -- "))
        .map(|(_, arguments)| arguments)
        // What goes into a file belongs to the rehearsal, which the end-to-end tests run.
        .filter(|arguments| !arguments.contains(" > "))
        .collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for arguments in commands {
        // By a shell, for the sake of events/*.json.
        let output = Command::new("sh")
            .args(["-c", &format!("exec \"$0\" {arguments}"), env!("CARGO_BIN_EXE_comeback")])
            .current_dir(repository())
            .output()
            .expect("sh runs");
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{arguments} prints nothing");
    }
}

#[test]
fn the_scale_table_begins_with_the_retries_of_todays_run() {
    let output = Command::new("python3")
        .args(["tests/scale/measure.py", env!("CARGO_BIN_EXE_comeback"), "1000"])
        .current_dir(repository())
        .output()
        .expect("Python 3 is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured = String::from_utf8(output.stdout).expect("text");
    let cells = |table: &str, events: &str| -> Vec<String> {
        let start = format!("| {events} | ");
        let row =
            table.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{start}: {table}"));
        row.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let [shown, measured] = [&readme(), &measured].map(|table| cells(table, "1,000"));
    assert_eq!((shown.len(), &shown[2]), (measured.len(), &measured[2]), "retries of 1,000 events");
}

#[test]
fn the_readmes_price_of_thin_traffic_is_the_demos() {
    let demo: Value = serde_json::from_str(&stdout(comeback(&["simulate", "--json"]))).expect("JSON");
    let [usd, retries] = ["cost_usd", "retries"].map(|figure| demo[figure].as_f64().expect("a number"));
    let price = format!("the demo cost {:.2} USD a million retries", usd / retries * 1e6);
    let prose = readme().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(prose.contains(&price), "README.md does not say: {price}");
}

#[test]
fn the_readmes_summary_is_what_simulate_prints() {
    let readme = readme();
    let shown: Vec<&str> = readme
        .lines()
        .skip_while(|line| !line.contains("events arrive within"))
        .take_while(|line| !line.starts_with("```"))
        .filter(|line| !line.contains("wall time"))
        .collect();
    assert!(shown.len() > 8, "the README shows no summary");

    let printed = stdout(comeback(&["simulate"]));
    for line in shown {
        assert!(printed.lines().any(|printed| printed == line), "not printed: {line}\n{printed}");
    }
}
