use std::env::join_paths;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use comeback_tests::{ARCHITECTURE, Background, Shell, eventually, free_port, request, root, scratch};

const RELEASES: &str = "https://github.com/comeback-retries/comeback/releases/latest/download";

pub(crate) fn dist() -> PathBuf {
    let dist = root().join("dist");
    assert!(dist.join("manifest.json").exists(), "there is no release: run `make dist` first");
    dist
}

/// A shell whose `PATH` has Node.js, Python and the system's programs, but neither this repository's tools nor Rust.
pub(crate) fn without_rust(shell: &Shell) -> Result<Shell, String> {
    let found =
        shell.run("command -v node\npython3 -c 'import os, sys; print(os.path.realpath(sys.executable))'")?;
    let beside = found.lines().filter_map(|program| Path::new(program).parent());
    let path =
        join_paths(beside.chain(["/usr/bin", "/bin"].map(Path::new))).map_err(|error| error.to_string())?;
    let shell = shell.clone().with("PATH", path);
    assert_no_rust(&shell);
    Ok(shell)
}

fn assert_no_rust(shell: &Shell) {
    for program in ["cargo", "rustc", "cargo-lambda"] {
        assert!(shell.run(&format!("command -v {program}")).is_err(), "{program} is on the PATH");
    }
}

/// An empty folder on a machine that has the SAM CLI and the AWS CLI, but not Rust.
pub(crate) struct Outside {
    shell: Shell,
    port: u16,
    _server: Background,
}

impl Outside {
    /// Creates an empty folder, and starts a server that offers the release in `dist/` for download.
    pub(crate) async fn new(shell: &Shell, name: &str) -> Self {
        let folder = scratch(name);
        let tools = scratch(&format!("{name}-tools"));
        for (environment, tool) in [("sam", "sam"), ("aws", "aws")] {
            let program = root().join(".tools").join(environment).join("bin").join(tool);
            symlink(program, tools.join(tool)).expect("a link can be made");
        }
        let port = free_port();
        let log = tools.join("server.log");
        let server = shell
            .clone()
            .with("DIST", dist())
            .start(
                &format!("exec python3 -m http.server --bind 127.0.0.1 --directory \"$DIST\" {port}"),
                &log,
            )
            .expect("the server starts");
        let answers = async || request("GET", port, "/manifest.json", "").ok();
        eventually("the server of the release to answer", answers).await;
        let shell = shell
            .clone()
            .with("COMEBACK_BASE_URL", format!("http://127.0.0.1:{port}"))
            .with("PATH", format!("{}:/usr/bin:/bin", tools.display()))
            .with("HOME", &tools)
            .with("FOLDER", folder);
        assert_no_rust(&shell);
        Self { shell, port, _server: server }
    }

    pub(crate) fn run(&self, commands: &str) -> Result<String, String> {
        self.shell.run(&format!("cd \"$FOLDER\"\n{commands}"))
    }

    /// Runs a code block from the documentation on this machine. Its downloads come from `dist/`.
    pub(crate) fn run_block(&self, block: &str) -> Result<String, String> {
        assert!(block.contains(RELEASES), "{block}");
        let block = block.replace(RELEASES, &format!("http://127.0.0.1:{}", self.port));
        self.run(&for_this_machine(&block))
    }
}

/// Adapts a code block, written for arm64, to this machine's architecture.
fn for_this_machine(block: &str) -> String {
    if ARCHITECTURE == "arm64" {
        return block.to_owned();
    }
    block.replace("comeback.yaml", &format!("comeback-{ARCHITECTURE}.yaml")).replace("arm64", ARCHITECTURE)
}
