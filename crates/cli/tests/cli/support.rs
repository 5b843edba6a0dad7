use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Runs `comeback` with this command line in the repository's folder.
pub(crate) fn comeback(line: &str) -> Output {
    comeback_with(line, &[])
}

pub(crate) fn comeback_with(line: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comeback"))
        .args(shlex::split(line).expect("a readable line"))
        .current_dir(repository())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied())
        .output()
        .expect("the command runs")
}

/// Runs the command with `input` on its standard input.
pub(crate) fn comeback_reading(line: &str, input: impl AsRef<[u8]>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comeback"));
    command.args(shlex::split(line).expect("a readable line")).current_dir(repository());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // The write may fail, because a command that does not read its standard input may already have ended.
    let _ = child.stdin.take().expect("piped").write_all(input.as_ref());
    child.wait_with_output().expect("the command ends")
}

/// Runs `comeback` successfully with this command line, and returns its standard output.
pub(crate) fn printed(line: &str) -> String {
    let output = comeback(line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Runs `comeback` successfully with this command line and `--json`, and returns the parsed standard output.
pub(crate) fn json(line: &str) -> Value {
    serde_json::from_str(&printed(&format!("{line} --json"))).expect("JSON")
}

/// Runs `comeback` with this command line, and returns its exit code and standard error.
pub(crate) fn failed(line: &str) -> (i32, String) {
    let output = comeback(line);
    assert_eq!(output.stdout, b"", "{line}: {output:?}");
    (output.status.code().expect("an exit code"), String::from_utf8(output.stderr).expect("text"))
}

pub(crate) fn assert_refused(line: &str, start: &str) {
    let (code, error) = failed(line);
    assert_eq!(code, 2, "{line}: {error}");
    assert!(error.starts_with(start), "{line}: {error}");
}

/// Names of the top-level members of indented JSON, in order.
pub(crate) fn members(json: &str) -> Vec<&str> {
    let lines = json.lines().filter(|line| line.starts_with("  \""));
    lines.map(|line| line.split('"').nth(1).expect("a key")).collect()
}

pub(crate) fn number(json: &Value, member: &str) -> u64 {
    json[member].as_u64().unwrap_or_else(|| panic!("{member} is not a count: {json}"))
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made")
}
