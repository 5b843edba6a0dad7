//! Tests that the Python tools and their dependencies are pinned by hash, and that only pinned packages are installed.

use std::collections::BTreeMap;

use comeback_tests::root;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Number of hashes for each requirement, such as `boto3==1.44.5`.
fn locked(text: &str) -> BTreeMap<&str, usize> {
    let mut hashes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut requirement = "";
    for line in text.lines() {
        let words = line.trim_end_matches([' ', '\\']);
        if words.trim_start().starts_with("--hash=sha256:") {
            *hashes.entry(requirement).or_default() += 1;
        } else {
            requirement = words.split(" ;").next().unwrap_or_default();
            assert!(
                !line.starts_with([' ', '-']) && requirement.contains("=="),
                "neither a requirement nor a hash: {line}"
            );
            hashes.entry(requirement).or_default();
        }
    }
    hashes
}

fn names(kind: &str) -> Vec<String> {
    let files = std::fs::read_dir(root().join("tests/tools")).expect("a folder");
    let files = files.map(|file| file.expect("an entry").file_name().into_string().expect("a plain name"));
    let mut names: Vec<_> = files.filter_map(|file| Some(file.strip_suffix(kind)?.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn every_tool_and_dependency_is_locked_by_hash() {
    let tools = names(".in");
    assert!(tools.len() >= 7, "{tools:?}");
    assert_eq!(tools, names(".txt"));
    for tool in tools {
        let text = read(&format!("tests/tools/{tool}.txt"));
        let locked = locked(&text);
        let unlocked: Vec<_> = locked.iter().filter(|(_, hashes)| **hashes == 0).collect();
        assert!(unlocked.is_empty(), "{tool}.txt has no hash of {unlocked:?}");
        for requirement in read(&format!("tests/tools/{tool}.in")).lines() {
            assert!(locked.contains_key(requirement), "{tool}.txt lacks {requirement}: run make lock-tools");
        }
    }
}

#[test]
fn only_locked_packages_are_installed() {
    let script = read("tests/tools/with.sh");
    let installing: Vec<_> =
        script.lines().filter(|line| line.replace('"', "").contains("pip install ")).collect();
    assert_eq!(installing.len(), 2, "{installing:?}");
    for line in installing {
        let is_locked = line.contains(" --require-hashes ") && line.ends_with(" --requirement \"$locked\"");
        assert!(is_locked, "{line}");
    }
}
