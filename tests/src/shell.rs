//! Runs shell commands and background servers, and waits for results.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::repository::{path_with_tools, root, without_cargos_variables};

/// Runs commands in the repository's root or another folder, with the repository's tools on `PATH` and without the
/// developer's own AWS settings.
#[derive(Clone, Debug)]
pub struct Shell {
    folder: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { folder: root().to_owned(), variables: Vec::new() }
            .with("PATH", path_with_tools())
            .with("SAM_CLI_TELEMETRY", "0")
            .with("AWS_CONFIG_FILE", "/dev/null")
            .with("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
            .with("AWS_EC2_METADATA_DISABLED", "true")
            .with("AWS_PAGER", "")
            // Unoptimized bootstraps build in a third of the time, and no test in this crate measures their speed or
            // size.
            .with("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .with("CARGO_PROFILE_RELEASE_LTO", "off")
            .with("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
    }

    /// Sets an environment variable for this shell's commands.
    pub fn with(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Makes this shell run its commands in another folder.
    pub fn at(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// A line to paste into a terminal, so that commands there use the same AWS endpoint and credentials as this shell.
    pub fn exports(&self) -> String {
        let is_aws = |name: &OsStr| name.as_encoded_bytes().starts_with(b"AWS_") || name == "SSL_CERT_FILE";
        let aws = self.variables.iter().filter(|(name, _)| is_aws(name));
        let export = |(name, value): &(OsString, OsString)| {
            format!("{}='{}'", name.display(), value.to_string_lossy().replace('\'', r"'\''"))
        };
        let exports: Vec<String> = aws.map(export).collect();
        let tool = root().join(".tools/aws/bin");
        format!(
            "unset AWS_PROFILE AWS_SESSION_TOKEN; export PATH='{}':\"$PATH\" {}",
            tool.display(),
            exports.join(" ")
        )
    }

    /// Runs a script to completion and returns its standard output.
    pub fn run(&self, script: &str) -> Result<String, String> {
        let output = self.output(script);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}\n$ {script}\n{stdout}{stderr}", output.status))
    }

    /// Runs a script to completion and returns its output and exit status, even if the script fails.
    pub fn output(&self, script: &str) -> Output {
        let mut command = self.command();
        command
            .args(["-euc", script])
            .stdin(Stdio::null())
            .output()
            .expect("the operating system has a shell")
    }

    /// Starts a script that runs until the [`Background`] is dropped. Its output goes to the file `log`.
    pub fn start(&self, script: &str, log: &Path) -> Result<Background, String> {
        // The wrapper ends the script's whole process group when its standard input closes. The kernel closes it even
        // if the test is killed. Only the wrapper traps TERM, so TERM ends every other process in the group.
        const WRAPPER: &str = "trap : TERM; sh -euc \"$0\" </dev/null & read -r _; kill -TERM 0; wait";
        let output = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let child = self
            .command()
            .args(["-c", WRAPPER, script])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("no shell: {error}"))?;
        Ok(Background { child, log: log.to_owned() })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        without_cargos_variables(&mut command);
        // Under clippy, this wrapper would compile the bootstraps too, with fewer optimizations.
        let compiler = "RUSTC_WORKSPACE_WRAPPER";
        for inherited in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_PROFILE", compiler] {
            command.env_remove(inherited);
        }
        command.current_dir(&self.folder).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Default for Shell {
    fn default() -> Self {
        Self::new()
    }
}

/// A server that is stopped when this value is dropped, or when the test's process ends or is killed.
#[derive(Debug)]
pub struct Background {
    child: Child,
    log: PathBuf,
}

impl Background {
    /// The server's output so far.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|log| String::from_utf8_lossy(&log).into_owned()).unwrap_or_default()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Nothing can be done about a failed wait here.
        let _ = self.child.wait();
    }
}

/// The longest time that a test waits for anything. On a busy machine, the handler may treat a slow call as lost. The
/// next attempt may then start up to two minutes of real time later, even on a fast clock.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Calls `ask` every 100 ms until it returns a value, and panics after [`PATIENCE`].
pub async fn eventually<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    let answer = tokio::time::timeout(PATIENCE, until(ask)).await;
    answer.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}

/// Calls `ask` every 100 ms until it returns a value, however long that takes.
pub async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A loopback port that no program listens on, and that no earlier call in this process returned.
///
/// It is below the ports that systems assign to clients (32768 and up on Linux), so no connection can take it.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_this_process = (std::process::id() % 200) as u16 * 100;
    loop {
        let port = 10_000 + (of_this_process + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Sends one HTTP/1.0 request to a server on this machine and returns the response's body.
pub fn request(method: &str, port: u16, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
        _ => Err(io::Error::other(answer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_variables_are_not_inherited() {
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "cargo runs this");
        let seen = Shell::new().run("env").expect("it runs");
        let left: Vec<&str> = seen
            .lines()
            .filter(|it| it.starts_with("CARGO_PKG_") || it.starts_with("CARGO_MANIFEST_"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn exports_give_another_shell_the_same_aws() {
        let shell =
            Shell::new().with("AWS_ENDPOINT_URL", "https://127.0.0.1:1").with("AWS_CA_BUNDLE", "it's/here");
        let script = format!(
            "{}; echo $AWS_ENDPOINT_URL; echo $AWS_CA_BUNDLE; command -v aws || true",
            shell.exports()
        );
        let printed = Shell { folder: root().to_owned(), variables: Vec::new() }
            .run(&script)
            .expect("a line that a shell reads");
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines[..2], ["https://127.0.0.1:1", "it's/here"]);
        let installed = root().join(".tools/aws/bin/aws");
        assert!(!installed.exists() || lines[2] == installed.to_str().expect("a plain path"), "{lines:?}");
    }
}
