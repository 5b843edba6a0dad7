//! Tests that each command in the documentation is run by a test, and that each relative link points to a file.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use comeback_tests::{pages, root};

/// The page and heading of each section with `sh` blocks, and the path of the test that runs the blocks.
///
/// Sections with only `comeback` and `make` commands are not listed.
const CLAIMS: [(&str, &str, &str); 24] = [
    ("README.md", "With SAM", "tests/tests/release/sam.rs"),
    ("README.md", "With the CDK", "tests/tests/release/packages.rs"),
    ("docs/alarms.md", "An alarm for each function", "tests/tests/operate/alarms.rs"),
    ("docs/attach.md", "With the command", "tests/tests/operate/attach.rs"),
    ("docs/attach.md", "Attach", "tests/tests/stack/attach.rs"),
    ("docs/attach.md", "Detach", "tests/tests/stack/attach.rs"),
    ("docs/consumer.md", "Install it", "tests/src/target.rs"),
    ("docs/deploy-cargo-lambda.md", "The stack by hand", "tests/src/stack.rs"),
    ("docs/deploy-cargo-lambda.md", "Remove it", "tests/tests/stack/attach.rs"),
    ("docs/deploy-cdk.md", "TypeScript", "tests/tests/release/packages.rs"),
    ("docs/deploy-cdk.md", "Python", "tests/tests/release/packages.rs"),
    ("docs/deploy-cdk.md", "The example", "tests/tests/stack/deploy.rs"),
    ("docs/deploy-cloudformation.md", "With the AWS CLI", "tests/tests/stack/cloudformation.rs"),
    ("docs/deploy-sam.md", "Without Rust", "tests/tests/release/sam.rs"),
    ("docs/deploy-sam.md", "From a checkout", "tests/tests/stack/deploy.rs"),
    ("docs/encryption.md", "A key of your own", "tests/tests/stack/encryption.rs"),
    ("docs/encryption.md", "Change the key", "tests/tests/stack/encryption.rs"),
    ("docs/envelope.md", "Open the envelope", "tests/tests/envelope_targets/page.rs"),
    ("docs/operate.md", "Install the command", "tests/tests/release/sam.rs"),
    ("docs/operate.md", "Rehearse a broken deployment", "tests/tests/operate/walk.rs"),
    ("docs/operate.md", "At three in the morning", "tests/tests/operate/walk.rs"),
    ("docs/remove.md", "Remove Comeback", "tests/tests/stack/attach.rs"),
    ("docs/settings.md", "How to write it", "tests/tests/template/quoting.rs"),
    ("docs/simulate.md", "Rehearse locally with cargo lambda watch", "tests/tests/stack/deploy.rs"),
];

#[test]
fn every_sh_block_is_run_by_a_test() {
    let mut claimed = BTreeSet::new();
    for page in pages::all() {
        for block in pages::sh_blocks(&pages::read(&page)) {
            let claim = CLAIMS.iter().find(|(claimed, heading, _)| {
                *claimed == page && block.headings.iter().any(|above| above == heading)
            });
            match claim {
                Some(claim) => {
                    claimed.insert(claim);
                }
                None => {
                    let unclaimed: Vec<_> =
                        block.text.lines().filter(|line| !is_run_wherever_it_stands(line)).collect();
                    assert!(unclaimed.is_empty(), "no test runs this command of {page}: {unclaimed:#?}");
                }
            }
        }
    }
    assert_eq!(claimed, CLAIMS.iter().collect(), "every claim has a block");
}

/// Returns true for `comeback` commands and `make` commands, which other tests check on every page.
fn is_run_wherever_it_stands(line: &str) -> bool {
    let is_comeback =
        line.starts_with("cargo run ") && line.contains(" -p comeback -- ") && !line.contains(" > ");
    is_comeback || line.starts_with("make ")
}

#[test]
fn tests_read_the_sections_they_claim() {
    for (page, heading, test) in CLAIMS {
        let source = pages::read(test);
        let call = format!("pages::blocks(\"{page}\", \"{heading}\")");
        assert!(source.contains(&call), "{test} does not call {call}");
    }
}

/// On each page, the commands for a checkout put its tools first on the `PATH`. A cargo-lambda that was installed
/// elsewhere might not find a compiler.
#[test]
fn installed_tools_come_first_on_the_path() {
    const FRONT: &str = "export PATH=\"$PWD/.tools/sam/bin:$PATH\"";
    let uses_one = |line: &str| ["sam ", "cargo lambda "].iter().any(|tool| line.starts_with(tool));
    let mut in_front = 0;
    for page in pages::all() {
        let blocks = pages::sh_blocks(&pages::read(&page));
        let of_release = |heading: &String| heading == "Install" || heading == "Without Rust";
        let in_checkout = |block: &&pages::Block| !block.headings.iter().any(of_release);
        let mut lines = blocks.iter().filter(in_checkout).flat_map(|block| block.text.lines());
        if let Some(first) = lines.find(|line| uses_one(line) || *line == FRONT) {
            assert_eq!(first, FRONT, "{page}");
            in_front += 1;
        }
    }
    assert_eq!(in_front, 6, "six pages");
}

#[test]
fn example_of_a_new_setting_still_applies() {
    let patch = std::env::temp_dir().join(format!("comeback-setting-{}.patch", std::process::id()));
    let diff = pages::blocks_in("diff", "CONTRIBUTING.md", "A new setting").join("\n");
    std::fs::write(&patch, diff + "\n").expect("the patch can be written");
    let apply = Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(root()).output();
    std::fs::remove_file(&patch).expect("the patch can be removed");
    let apply = apply.expect("git runs");
    let stderr = String::from_utf8_lossy(&apply.stderr);
    assert!(apply.status.success(), "the code has changed: make the example in CONTRIBUTING anew\n{stderr}");
}

#[test]
fn every_make_target_exists() {
    let mut targets = BTreeSet::new();
    for page in pages::all() {
        let text = pages::read(&page);
        for mention in ["`make ", "\nmake "].iter().flat_map(|start| text.split(start).skip(1)) {
            targets.insert(
                mention.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect::<String>(),
            );
        }
    }
    assert!(targets.len() > 5, "{targets:?}");
    targets.iter().for_each(|target| drop(recipe(target)));
}

#[test]
fn demo_is_a_simulation_of_a_recovery() {
    let simulate = "cargo run --profile demo -p comeback --no-default-features -- simulate\n";
    assert_eq!(recipe("demo"), simulate);
}

/// The console is built without the AWS SDK, which takes minutes to build.
#[test]
fn console_is_built_without_the_sdk() {
    let console =
        "cargo run --profile demo -p comeback --no-default-features --features console -- ui --demo\n";
    assert_eq!(recipe("console"), console);
}

/// The commands that `make` would run for a target.
fn recipe(target: &str) -> String {
    let mut make = Command::new("make");
    // `make test` runs this test and would pass its flags on.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let output = make.args(["--dry-run", target]).current_dir(root()).output().expect("make runs");
    assert!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut links = 0;
    for page in pages::all() {
        let folder = Path::new(&page).parent().expect("a page lies in a folder");
        for link in pages::read(&page).split("](").skip(1) {
            let (target, _) = link.split_once(')').expect("a link ends");
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, _) = target.split_once('#').unwrap_or((target, ""));
            assert!(root().join(folder).join(file).exists(), "{page} links to {target}");
        }
    }
    assert!(links > 40, "{links}");
}

/// Markdown shows the rows after a blank line as plain text.
#[test]
fn no_table_has_a_blank_line_in_it() {
    let is_row = |line: &str| line.trim_start().starts_with('|');
    let mut tables = 0;
    for page in pages::all().into_iter().chain(["ARCHITECTURE.md", "CONTRIBUTING.md"].map(Into::into)) {
        let text = pages::read(&page);
        let lines: Vec<&str> = text.lines().chain([""]).collect();
        for three in lines.windows(3) {
            let [before, row, below] = three else { unreachable!("BUG: windows of three") };
            if before.is_empty() && is_row(row) {
                let is_head = is_row(below) && !below.contains(|it| !"|-: ".contains(it));
                assert!(is_head, "{page} has a row without a head above it: {row}");
                tables += 1;
            }
        }
    }
    assert!(tables > 20, "{tables}");
}
