//! What the README shows of `comeback replay` is what it prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_readmes_summary_is_what_replay_prints() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md can be read");
    let shown: Vec<&str> = readme
        .lines()
        .skip_while(|line| !line.contains("events arrive within"))
        .take_while(|line| !line.starts_with("```"))
        .filter(|line| !line.contains("wall time"))
        .collect();
    assert!(shown.len() > 8, "the README shows no summary");

    let output = Command::new(env!("CARGO_BIN_EXE_comeback")).arg("replay").output().expect("it runs");
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).expect("text");
    for line in shown {
        assert!(printed.lines().any(|printed| printed == line), "not printed: {line}\n{printed}");
    }
}
