use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs the compiled command in the repository.
pub(crate) fn comeback(arguments: &[&str]) -> Output {
    comeback_with(arguments, &[])
}

pub(crate) fn comeback_with(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comeback"))
        .args(arguments)
        .current_dir(repository())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied())
        .output()
        .expect("the command runs")
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Standard output of a run that worked.
pub(crate) fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Exit code and standard error of one that did not, which then printed nothing else.
pub(crate) fn failed(output: &Output) -> (i32, &str) {
    assert_eq!(output.stdout, b"", "{output:?}");
    (output.status.code().expect("an exit code"), std::str::from_utf8(&output.stderr).expect("text"))
}

/// A folder that is gone with the test.
pub(crate) fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made")
}

/// As an argument.
pub(crate) fn plain(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}
