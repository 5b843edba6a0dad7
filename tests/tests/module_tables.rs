//! The module tables (`//! | file | holds |`) name each module that lies beside or below their file, and
//! nothing else. Each crate has one at its head; other files may.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use comeback_tests::root;

const HEADER: &str = "//! | file | holds |";

#[test]
fn module_tables_name_the_modules_there_are() {
    let findings: Vec<String> = crates().iter().flat_map(|package| findings_in(package)).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The workspace's packages.
fn crates() -> Vec<PathBuf> {
    let in_folders = ["crates", "functions"].into_iter().flat_map(|folder| entries(&root().join(folder)));
    let packages = in_folders.chain(["fuzz", "tests"].map(|package| root().join(package)));
    let packages: Vec<PathBuf> = packages.filter(|path| path.join("Cargo.toml").exists()).collect();
    assert!(packages.len() >= 8, "only {packages:?}");
    packages
}

fn findings_in(package: &Path) -> Vec<String> {
    let source = package.join("src");
    let head = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|path| path.exists());
    let head = head.expect("a package has a lib.rs or a main.rs");
    let files = [source, package.join("tests")].into_iter().flat_map(|folder| rust_files(&folder));
    files.flat_map(|file| findings_of(&file, file == head)).collect()
}

/// What is wrong with a file's table; also its absence, if the file must have one.
fn findings_of(file: &Path, is_head: bool) -> Vec<String> {
    let shown = file.strip_prefix(root()).expect("it lies in the repository").display();
    let text = fs::read_to_string(file).expect("a source file can be read");
    let Some(named) = names_in(&text) else {
        return if is_head { vec![format!("{shown}: no table `{HEADER}`")] } else { Vec::new() };
    };
    let folder = folder_of(file);
    let unnamed = modules_in(&folder).into_iter().filter(|module| !named.contains(module));
    let unnamed = unnamed.map(|module| format!("{shown}: the table does not name `{module}`"));
    let exists = |name: &String| folder.join(name).is_dir() || folder.join(format!("{name}.rs")).exists();
    let absent = named.iter().filter(|name| !exists(name));
    unnamed
        .chain(absent.map(|name| format!("{shown}: the table names `{name}`, which is not there")))
        .collect()
}

/// The names in backticks of the table's first column, `None` if the file has no table.
fn names_in(text: &str) -> Option<BTreeSet<String>> {
    let rows = text.lines().skip_while(|line| *line != HEADER);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with("//! |")).collect();
    let (_header_and_rule, rows) = rows.split_at_checked(2)?;
    let first_cells = rows.iter().filter_map(|row| row.split('|').nth(1));
    // Every second part of a cell stands between backticks.
    Some(first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect())
}

/// Where the submodules of a file lie.
fn folder_of(file: &Path) -> PathBuf {
    let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| file.ends_with(name));
    if is_root { file.parent().expect("a file has a folder").to_owned() } else { file.with_extension("") }
}

/// The modules of a folder by name. Crate roots, programs and a module's own tests are none.
fn modules_in(folder: &Path) -> BTreeSet<String> {
    let modules = entries(folder).into_iter().filter(|path| {
        path.extension().is_some_and(|it| it == "rs") || (path.is_dir() && !rust_files(path).is_empty())
    });
    let names = modules.filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
    names.filter(|name| !["lib", "main", "mod", "bin", "tests"].contains(&name.as_str())).collect()
}

/// The Rust files of a folder and the folders below it.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) = entries(folder).into_iter().partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs"));
    here.chain(folders.iter().flat_map(|folder| rust_files(folder))).collect()
}

/// What lies in a folder, sorted; nothing if there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    paths
}

#[test]
fn names_stand_in_backticks_in_the_first_column() {
    let text = "//! Text `x`.\n//!\n//! | feature | sends |\n//! |---|---|\n//! | `a` | b |\n//!\n\
                //! | file | holds |\n//! |---|---|\n//! | `one`, `two` | `not this` |\n//! | [`three`] | |\n\
                //!\n//! | `nor` | this |\n";
    let names = names_in(text).expect("it has a table");
    assert_eq!(names.iter().collect::<Vec<_>>(), ["one", "three", "two"]);
    assert_eq!(names_in("//! | `a` | b |\n"), None);
}
