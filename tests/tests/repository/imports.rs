//! Tests that imports inside a crate name the defining module, and do not form a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use comeback_tests::root;
use regex::Regex;

/// For each file, the files that it imports from. All are paths under `src`, such as `pauses/edits`.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn imports_point_one_way() {
    let sources = sources();
    assert!(sources.len() > 10, "{sources:?}");
    for source in sources {
        let (imports, through_the_root) = read(&source);
        let name = source.strip_prefix(root()).unwrap().display();
        assert!(through_the_root.is_empty(), "{name}: import from the module itself: {through_the_root:?}");
        if let Some(circle) = circle(&imports) {
            panic!("{name}: these files import from each other: {}", circle.join(" -> "));
        }
    }
}

#[test]
fn circles_are_found() {
    let imports = |edges: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports.entry((*from).into()).or_default().insert((*to).into());
        }
        imports
    };
    assert_eq!(circle(&imports(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let circle = circle(&imports(&[("a", "b"), ("b", "c"), ("c", "b")]));
    assert_eq!(circle, Some(["b", "c", "b"].map(Into::into).to_vec()));
}

#[test]
fn each_import_is_read() {
    let text =
        "use std::fs;\nuse crate::{\n    a::{self, B},\n    c::D as E,\n};\npub(crate) use self::f::g;\n";
    assert_eq!(imported(text), ["std::fs", "crate::a", "crate::a::B", "crate::c::D", "self::f::g"]);
    assert_eq!(imported("// use a::b;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n"), [""; 0]);
}

fn sources() -> Vec<PathBuf> {
    let folders = ["crates", "functions"].map(|folder| fs::read_dir(root().join(folder)).expect("a folder"));
    let crates = folders.into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let all = crates.chain(["tests", "fuzz"].map(|name| root().join(name)));
    all.map(|path| path.join("src")).filter(|path| path.is_dir()).collect()
}

/// Returns the files that each file of a crate imports from. The second value lists the imports that go through a
/// re-export in the crate's root.
fn read(source: &Path) -> (Imports, Vec<String>) {
    let mut texts = BTreeMap::new();
    collect(source, source, &mut texts);
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap_or_default();
    let exported = Regex::new(r"(?m)^pub use ([^;]+);").expect("a pattern");
    let exported = exported.captures_iter(&lib).flat_map(|export| paths(&export[1]));
    let exported: BTreeSet<String> =
        exported.filter_map(|path| Some(path.rsplit("::").next()?.into())).collect();
    let (mut imports, mut through_the_root) = (Imports::new(), Vec::new());
    for (file, text) in &texts {
        let targets = imports.entry(file.clone()).or_default();
        for path in imported(text).iter().filter_map(|import| in_the_crate(file, import)) {
            match longest_file(&path, &texts) {
                Some(target) if target != *file => {
                    targets.insert(target);
                }
                None if exported.contains(&path) => through_the_root.push(format!("{file}: {path}")),
                _ => {}
            }
        }
    }
    (imports, through_the_root)
}

/// Reads the text of all files except crate roots and tests.
fn collect(source: &Path, folder: &Path, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(source).expect("it is inside").with_extension("").display().to_string();
        if path.is_dir() {
            collect(source, &path, texts);
        } else if !["lib", "main"].contains(&name.as_str())
            && !name.starts_with("bin/")
            && !name.ends_with("tests")
        {
            texts.insert(name, fs::read_to_string(&path).expect("a source file"));
        }
    }
}

/// Returns the paths that a file imports, except those that only its tests import.
fn imported(text: &str) -> Vec<String> {
    let tests = Regex::new(r"(?m)^#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod ").expect("a pattern");
    let text = tests.split(text).next().unwrap_or_default();
    let import = Regex::new(r"(?m)^(?:pub(?:\([a-z]+\))? )?use ([^;]+);").expect("a pattern");
    import.captures_iter(text).flat_map(|import| paths(&import[1])).collect()
}

/// Expands an import such as `a::{b, c::{self, d as e}}` to `a::b`, `a::c` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some((start, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        return vec![path.trim_end_matches("::self").into()];
    };
    let inner = rest.rsplit_once('}').expect("a brace is closed").0;
    let mut depth = 0;
    let branches = inner.split(|character| {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    });
    let branches = branches.map(str::trim).filter(|branch| !branch.is_empty());
    branches.flat_map(|branch| paths(&format!("{}{branch}", start.trim()))).collect()
}

/// Returns the imported item's path from the crate's root, or `None` for another crate's item.
fn in_the_crate(file: &str, import: &str) -> Option<String> {
    let mut segments: Vec<&str> = file.split('/').collect();
    let mut path = import.split("::").peekable();
    match path.next()? {
        "crate" => segments.clear(),
        "self" => {}
        "super" => {
            segments.pop();
            while path.next_if_eq(&"super").is_some() {
                segments.pop();
            }
        }
        _ => return None,
    }
    Some(segments.into_iter().chain(path).collect::<Vec<_>>().join("/"))
}

fn longest_file(path: &str, texts: &BTreeMap<String, String>) -> Option<String> {
    let mut path = path;
    while !texts.contains_key(path) {
        path = path.rsplit_once('/')?.0;
    }
    Some(path.into())
}

/// Returns the files of an import cycle, with the first repeated at the end, or `None` if there is no cycle.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    let mut left = imports.clone();
    // A file that imports from none of the remaining files is not in a cycle.
    while let Some(file) =
        left.iter().find(|(_, to)| !to.iter().any(|to| left.contains_key(to))).map(|it| it.0.clone())
    {
        left.remove(&file);
    }
    let mut way = vec![left.keys().next()?.clone()];
    loop {
        let next = left[way.last()?].iter().find(|to| left.contains_key(*to))?.clone();
        let seen = way.iter().position(|file| *file == next);
        way.push(next);
        if let Some(start) = seen {
            return Some(way.split_off(start));
        }
    }
}
