//! Tests the dependencies between `operate`, the command and the console. Also tests which files name an AWS SDK.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use comeback_tests::root;
use regex::Regex;

/// Libraries that write output to a terminal or a browser, or parse a command line.
const DRAWING: [&str; 6] = ["anstream", "askama", "axum", "clap", "comfy-table", "indicatif"];

#[test]
fn operate_depends_on_neither_command_nor_console() {
    let known = dependencies("operate");
    assert!(known.contains("comeback-engine"), "{known:?}");
    for never in DRAWING.into_iter().chain(["comeback", "comeback-console"]) {
        assert!(!known.contains(never), "{never}");
    }
}

#[test]
fn command_and_console_do_not_depend_on_each_other() {
    let known = dependencies("console");
    assert!(known.contains("comeback-operate"), "{known:?}");
    for never in ["comeback", "clap", "comfy-table", "indicatif"] {
        assert!(!known.contains(never), "{never}");
    }
    // In the command's source, only the file of `comeback ui`, which starts the console, may name the console's crate.
    assert_eq!(files_with("cli", "comeback_console"), ["src/ui.rs"]);
}

#[test]
fn only_the_port_names_an_sdk() {
    let sdk = "aws_sdk_|aws_smithy|aws_config|aws_types|aws_runtime";
    assert_eq!([files_with("cli", sdk), files_with("console", sdk)], [[""; 0]; 2]);
    let named = files_with("operate", sdk);
    assert!(named.len() > 5, "{named:?}");
    for file in named {
        assert!(file.starts_with("src/aws/sdk"), "{file}");
    }
}

#[test]
fn console_never_parses_printed_text() {
    assert_eq!(files_with("console", r#"strip_str|NotConfirmed|strip_prefix\("comeback "#), [""; 0]);
}

/// The dependencies of a crate, without dev-dependencies.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest =
        fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("a manifest");
    let (_, dependencies) = manifest.split_once("\n[dependencies]\n").expect("dependencies");
    let end = dependencies.find("\n[").unwrap_or(dependencies.len());
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    dependencies[..end].lines().filter(|line| !line.starts_with('#')).map(name).collect()
}

fn files_with(name: &str, pattern: &str) -> Vec<String> {
    let folder = root().join("crates").join(name);
    let pattern = Regex::new(pattern).expect("a pattern");
    let mut found: Vec<String> = sources(&folder.join("src"))
        .into_iter()
        .filter(|file| pattern.is_match(&fs::read_to_string(file).expect("a source")))
        .map(|file| file.strip_prefix(&folder).expect("inside").display().to_string())
        .collect();
    found.sort();
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}
