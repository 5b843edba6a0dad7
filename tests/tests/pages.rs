//! The documentation against the repository: each command is run by a test, each link leads somewhere.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use comeback_tests::{pages, root};

/// The test that runs the `sh` blocks of a section, wherever they hold more than `comeback` and `make` commands.
const CLAIMS: [(&str, &str, &str); 19] = [
    ("README.md", "With SAM", "tests/tests/release/sam.rs"),
    ("README.md", "With the CDK", "tests/tests/packages/app.rs"),
    ("docs/alarms.md", "An alarm for each function", "tests/tests/operate/alarms.rs"),
    ("docs/attach.md", "With the command", "tests/tests/operate/attach.rs"),
    ("docs/attach.md", "Attach", "tests/tests/end_to_end/attach.rs"),
    ("docs/attach.md", "Detach", "tests/tests/end_to_end/attach.rs"),
    ("docs/deploy-cargo-lambda.md", "The stack by hand", "tests/src/by_hand.rs"),
    ("docs/deploy-cargo-lambda.md", "Remove it", "tests/tests/end_to_end/attach.rs"),
    ("docs/deploy-cdk.md", "TypeScript", "tests/tests/packages/app.rs"),
    ("docs/deploy-cdk.md", "Python", "tests/tests/packages/app.rs"),
    ("docs/deploy-cdk.md", "The example", "tests/tests/end_to_end/cdk.rs"),
    ("docs/deploy-sam.md", "Without Rust", "tests/tests/release/sam.rs"),
    ("docs/deploy-sam.md", "From a checkout", "tests/tests/end_to_end/sam.rs"),
    ("docs/envelope.md", "Open the envelope", "tests/tests/envelope_targets/page.rs"),
    ("docs/operate.md", "Install the command", "tests/tests/release/command.rs"),
    ("docs/operate.md", "Rehearse a broken deployment", "tests/tests/operate/walk.rs"),
    ("docs/operate.md", "At three in the morning", "tests/tests/operate/walk.rs"),
    ("docs/remove.md", "Remove Comeback", "tests/tests/end_to_end/remove.rs"),
    (
        "docs/simulate.md",
        "Rehearse locally with cargo lambda watch",
        "tests/tests/end_to_end/cargo_lambda.rs",
    ),
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
    assert_eq!(claimed, CLAIMS.iter().collect(), "each claim is for a block");
}

/// `crates/cli/tests/cli/pages.rs` runs every command of the first kind, and `every_make_target_exists` checks the second.
fn is_run_wherever_it_stands(line: &str) -> bool {
    let is_comeback =
        line.starts_with("cargo run ") && line.contains(" -p comeback -- ") && !line.contains(" > ");
    is_comeback || line.starts_with("make ")
}

#[test]
fn the_tests_that_claim_a_section_read_it() {
    for (page, heading, test) in CLAIMS {
        let source = pages::read(test);
        let call = format!("pages::blocks(\"{page}\", \"{heading}\")");
        assert!(source.contains(&call), "{test} does not call {call}");
    }
}

/// The tools of `make tools` come first: another cargo-lambda might not find its compiler. A release needs no checkout.
#[test]
fn a_page_that_uses_an_installed_tool_puts_it_in_front() {
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
    assert_eq!(in_front, 4, "four pages");
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
fn the_demo_is_a_simulation_with_the_defaults() {
    assert_eq!(recipe("demo"), "cargo run --profile demo -p comeback --no-default-features -- simulate\n");
}

/// The commands that `make` would run for a target.
fn recipe(target: &str) -> String {
    let mut make = Command::new("make");
    // `make test` runs this test, and its flags are not meant for us.
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
