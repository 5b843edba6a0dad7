use std::env::join_paths;
use std::path::{Path, PathBuf};

use comeback_tests::{Shell, root};

/// What must not be found by somebody who installs a release.
const TOOLCHAIN: [&str; 3] = ["cargo", "rustc", "cargo-lambda"];

/// The folder into which `make dist` puts a release.
pub(crate) fn dist() -> PathBuf {
    root().join("dist")
}

/// A file of the release.
///
/// # Errors
///
/// If there is none of this name.
pub(crate) fn released(name: &str) -> Result<PathBuf, String> {
    let file = dist().join(name);
    if file.is_file() { Ok(file) } else { Err(format!("{} does not exist: run `make dist`", file.display())) }
}

/// The shell without this repository's tools and without a Rust toolchain: with Node, Python and the system's programs.
///
/// # Errors
///
/// If a toolchain lies beside one of these.
pub(crate) fn without_toolchain(shell: &Shell) -> Result<Shell, String> {
    let found =
        shell.run("command -v node\npython3 -c 'import os, sys; print(os.path.realpath(sys.executable))'")?;
    let beside = found.lines().filter_map(|program| Path::new(program).parent());
    let path =
        join_paths(beside.chain(["/usr/bin", "/bin"].map(Path::new))).map_err(|error| error.to_string())?;
    let shell = shell.clone().with("PATH", path);
    for program in TOOLCHAIN {
        if let Ok(where_it_is) = shell.run(&format!("command -v {program}")) {
            return Err(format!("{} is on the PATH of somebody without Rust", where_it_is.trim()));
        }
    }
    Ok(shell)
}
