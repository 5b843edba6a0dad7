use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use comeback_tests::{ARCHITECTURE, Background, Shell, eventually, free_port, request, root, scratch};

/// Where the pages download a release from.
const RELEASES: &str = "https://github.com/comeback-retries/comeback/releases/latest/download";

/// What `make dist` made.
pub(crate) fn dist() -> PathBuf {
    let dist = root().join("dist");
    assert!(dist.join("manifest.json").exists(), "there is no release: run `make dist` first");
    dist
}

/// An empty folder on a machine that has the SAM CLI and the AWS CLI, and no Rust.
pub(crate) struct Outside {
    shell: Shell,
    port: u16,
    _server: Background,
}

impl Outside {
    /// One whose AWS is that of `shell`.
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
        eventually("the server of the release to answer", Duration::from_secs(30), answers).await;
        let shell = shell
            .clone()
            .with("COMEBACK_BASE_URL", format!("http://127.0.0.1:{port}"))
            .with("PATH", format!("{}:/usr/bin:/bin", tools.display()))
            .with("HOME", &tools)
            .with("FOLDER", folder);
        let outside = Self { shell, port, _server: server };
        for rust in ["cargo", "rustc", "cargo-lambda"] {
            assert!(outside.run(&format!("command -v {rust}")).is_err(), "{rust} is on the PATH");
        }
        outside
    }

    /// Runs commands in the folder.
    pub(crate) fn run(&self, commands: &str) -> Result<String, String> {
        self.shell.run(&format!("cd \"$FOLDER\"\n{commands}"))
    }

    /// Runs a page's block as it stands, but that it downloads from here, and what this machine can run.
    pub(crate) fn run_block(&self, block: &str) -> Result<String, String> {
        assert!(block.contains(RELEASES), "{block}");
        let block = block.replace(RELEASES, &format!("http://127.0.0.1:{}", self.port));
        self.run(&for_this_machine(&block))
    }
}

/// The pages install for arm64.
fn for_this_machine(block: &str) -> String {
    if ARCHITECTURE == "arm64" {
        return block.to_owned();
    }
    block.replace("comeback.yaml", &format!("comeback-{ARCHITECTURE}.yaml")).replace("arm64", ARCHITECTURE)
}
