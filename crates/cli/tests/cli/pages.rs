//! The documentation of `comeback` shows what the command prints, and each of its commands runs.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support::{comeback, repository, stdout};

fn read(page: &str) -> String {
    std::fs::read_to_string(repository().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

#[test]
fn each_command_of_the_pages_runs() {
    let docs = std::fs::read_dir(repository().join("docs")).expect("docs/ is a directory");
    let docs = docs.map(|entry| entry.expect("an entry").path());
    let pages: Vec<PathBuf> = docs.chain([repository().join("README.md")]).collect();
    let texts = pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let texts: Vec<String> =
        texts.map(|page| std::fs::read_to_string(page).expect("a readable page")).collect();
    let commands: Vec<&str> = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.starts_with("cargo run "))
        .filter_map(|line| line.split_once(" -p comeback -- "))
        .map(|(_, arguments)| arguments)
        // The end-to-end tests run the one that writes a file, with the rehearsal that needs the file.
        .filter(|arguments| !arguments.contains(" > "))
        .collect();
    assert!(commands.len() >= 12, "{commands:?}");
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
    let [shown, measured] = [&read("docs/simulate.md"), &measured].map(|table| cells(table, "1,000"));
    assert_eq!((shown.len(), &shown[2]), (measured.len(), &measured[2]), "retries of 1,000 events");
}

#[test]
fn the_documented_price_of_thin_traffic_is_the_demos() {
    let demo: Value = serde_json::from_str(&stdout(comeback(&["simulate", "--json"]))).expect("JSON");
    let [usd, retries] = ["cost_usd", "retries"].map(|figure| demo[figure].as_f64().expect("a number"));
    let price = format!("the demo cost {:.2} USD a million retries", usd / retries * 1e6);
    let prose = read("docs/limits-and-costs.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(prose.contains(&price), "docs/limits-and-costs.md does not say: {price}");
}

#[test]
fn the_readmes_summary_is_what_simulate_prints() {
    let readme = read("README.md");
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
