//! Tests that the packages, lock files, documentation pages and changelog all state the same version as the workspace's
//! Cargo.toml.

use std::process::Command;

use comeback_tests::{pages, root};
use regex::Regex;
use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn workspace_packages_have_and_require_the_version() {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a workspace has packages");
    assert!(packages.len() > 10, "only {}", packages.len());
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        assert_eq!(package["version"], VERSION, "{name} has no `version.workspace = true`");
        let dependencies = package["dependencies"].as_array().expect("a list, perhaps empty");
        for dependency in dependencies.iter().filter(|it| it["path"].is_string()) {
            // An unpublished package depends on other packages by path, and may omit their version.
            let unpublished = package["publish"] == serde_json::json!([]) && dependency["req"] == "*";
            let asked = format!("^{VERSION}");
            assert!(unpublished || dependency["req"] == *asked, "{name} asks for {dependency}");
        }
    }
}

#[test]
fn npm_packages_and_lock_files_have_the_version() {
    for folder in ["infra", "clients/node", "clients/node-sqs"] {
        let package = json(&format!("{folder}/package.json"));
        assert_eq!(package["version"], VERSION, "{folder}/package.json");
        let lock = json(&format!("{folder}/package-lock.json"));
        assert_eq!(lock["version"], VERSION, "{folder}/package-lock.json: run npm install there");
        let root = &lock["packages"][""];
        assert_eq!(root["version"], VERSION, "{folder}/package-lock.json: run npm install there");
        assert_eq!(root["name"], package["name"], "{folder}/package-lock.json");
    }
}

#[test]
fn python_packages_have_the_version() {
    let expected = format!("version = \"{VERSION}\"");
    for page in ["clients/python/pyproject.toml", "clients/python-sqs/pyproject.toml"] {
        assert!(pages::read(page).lines().any(|line| line == expected), "{page} has no line {expected}");
    }
}

/// The handler's function is tagged with the version, because `comeback status` shows the tag.
#[test]
fn handlers_tag_has_the_version() {
    let tag = format!("Tags: {{ \"comeback:version\": \"{VERSION}\" }}");
    assert!(pages::read("template.yaml").contains(&tag), "template.yaml has no {tag}");
}

/// If the documentation names a release file, such as `comeback-cdk-0.1.0.tgz`, the name has the current version.
#[test]
fn pages_name_no_file_of_another_version() {
    let file = Regex::new(r"comeback[a-z_-]*-v?(\d+\.\d+\.\d+)").expect("a pattern");
    let packages = ["infra", "clients/node", "clients/node-sqs", "clients/python", "clients/python-sqs"];
    let readmes = packages.map(|package| format!("{package}/README.md"));
    for page in pages::all().into_iter().chain(readmes) {
        for found in file.captures_iter(&pages::read(&page)) {
            assert_eq!(&found[1], VERSION, "{page} names {}", &found[0]);
        }
    }
}

#[test]
fn newest_release_of_the_changelog_has_the_version() {
    let changelog = pages::read("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| released().captures(line));
    assert!(newest.is_none_or(|newest| &newest[1] == VERSION), "the packages have {VERSION}");
}

/// Until the first release, at least one page says `Nothing is released yet`. Afterwards, no page may say so.
#[test]
fn pages_say_whether_anything_is_released() {
    let is_released = pages::read("CHANGELOG.md").lines().any(|line| released().is_match(line));
    let says_no = |page: &String| {
        let words: Vec<_> = pages::read(page).split_whitespace().map(str::to_owned).collect();
        words.join(" ").contains("Nothing is released yet")
    };
    let pages: Vec<_> = pages::all().into_iter().filter(says_no).collect();
    assert_eq!(pages.is_empty(), is_released, "{pages:?}");
}

fn released() -> Regex {
    Regex::new(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$").expect("a pattern")
}

fn json(file: &str) -> Value {
    serde_json::from_str(&pages::read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}
