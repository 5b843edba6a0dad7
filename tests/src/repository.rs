//! Finds the repository and its tools, creates scratch folders, builds the `comeback` command, and reads
//! `template.yaml`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// The root folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("BUG: the package lies in the repository")
}

/// Creates an empty folder for a test's files, in place of any older one with this name.
pub fn scratch(name: &str) -> PathBuf {
    let directory = root().join("target").join("end-to-end").join(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory).expect("an old scratch directory can be removed");
    }
    std::fs::create_dir_all(&directory).expect("a scratch directory can be made");
    directory
}

/// Builds `comeback` and returns the program's path.
///
/// A plain `cargo build` would omit features that only dev-dependencies enable, and would rebuild most dependencies.
pub fn built_command() -> PathBuf {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--quiet", "--workspace", "--all-features", "--no-run", "--test", "cli"]);
    let output = without_cargos_variables(&mut cargo).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    built_program("comeback")
}

pub(crate) fn built_program(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("a test is a program");
    // A test program is in target/PROFILE/deps, and the program of `make local` is in target/PROFILE.
    let mut folders = program.ancestors().skip(1);
    let profile = folders.find(|folder| !folder.ends_with("deps")).expect("it lies in target/PROFILE");
    profile.join(name)
}

/// Removes the variables that cargo sets for tests, because they make cargo rebuild `ring` and its dependents.
pub(crate) fn without_cargos_variables(command: &mut Command) -> &mut Command {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
        command.env_remove(name);
    }
    command
}

pub(crate) fn path_with_tools() -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let tools = ["sam", "aws", "ministack"].map(|tool| root().join(".tools").join(tool).join("bin"));
    std::env::join_paths(tools.into_iter().chain(std::env::split_paths(&inherited)))
        .expect("the repository's path holds no colon")
}

/// `template.yaml` as JSON, with short intrinsics (`!Ref`, `!GetAtt`, …) in their long form.
pub fn template() -> &'static Value {
    static TEMPLATE: LazyLock<Value> = LazyLock::new(read_template);
    &TEMPLATE
}

fn read_template() -> Value {
    const READ: &str = "import json, sys; from cfnlint.decode import cfn_yaml; \
        json.dump(cfn_yaml.load(sys.argv[1]), sys.stdout)";
    let output = Command::new(root().join(".tools/sam/bin/python"))
        .args(["-c", READ])
        .arg(root().join("template.yaml"))
        .output()
        .expect("the tools are installed: run `make tools`");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}
