//! Signs the first browser in: the browser opens a private file, or the user copies a URL with a one-time code.
//!
//! The browser gets the file's path, not the code, because other users can list a program's arguments.

use std::io::{BufRead as _, Write as _};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use askama::Template;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::access::Access;
use comeback_operate::clock::now;

/// Lifetime of the file that signs in the first browser, and of the file's one-time code.
const FILE_FOR: Duration = Duration::from_secs(60);

#[derive(Template)]
#[template(path = "open.html")]
struct Opening {
    url: String,
}

pub(super) fn announce(address: SocketAddr, opens_browser: bool, access: &Rc<Access>) {
    anstream::println!("The console is at http://{address}");
    let is_open = opens_browser && open(address, access);
    if !is_open {
        print_way_in(address, access);
    }
    anstream::println!("Press Enter for an address to open yourself, or Ctrl-C to stop.");
    let access = Rc::clone(access);
    let mut lines = enters();
    tokio::task::spawn_local(async move {
        while lines.recv().await.is_some() {
            print_way_in(address, &access);
        }
    });
}

fn print_way_in(address: SocketAddr, access: &Access) {
    let path = access.way_in(now());
    anstream::println!("Open within a minute; works once: http://{address}{path}");
}

/// Opens the console in a browser, and returns false if that fails.
fn open(address: SocketAddr, access: &Access) -> bool {
    let opened = private_file(format!("http://{address}{}", access.way_in(now())))
        .map_err(|problem| problem.to_string())
        .and_then(|(folder, file)| match opener::open_browser(&file) {
            Ok(()) => Ok(folder),
            Err(problem) => Err(problem.to_string()),
        });
    match opened {
        Ok(folder) => {
            tokio::task::spawn_local(remove_when_used(folder, access.code_used()));
            true
        }
        Err(problem) => {
            anstream::eprintln!("note: no browser could be opened: {problem}");
            false
        }
    }
}

/// Writes an HTML file that redirects to `url`, in a folder that only this user can read.
fn private_file(url: String) -> std::io::Result<(TempDir, std::path::PathBuf)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("comeback-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let folder = builder.tempdir()?;
    let path = folder.path().join("open.html");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let page = Opening { url }.render().expect("BUG: writing to a String");
    options.open(&path)?.write_all(page.as_bytes())?;
    Ok((folder, path))
}

async fn remove_when_used(folder: TempDir, used: impl Future<Output = ()>) {
    let _ = tokio::time::timeout(FILE_FOR, used).await;
    // If the folder cannot be removed, it stays among the user's own temporary files, with a code that no longer works.
    let _ = folder.close();
}

/// Returns a receiver that gets a message for each line read from standard input.
fn enters() -> mpsc::UnboundedReceiver<()> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::task::spawn_blocking(move || {
        for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_its_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let (folder, file) = private_file("http://127.0.0.1:7070/enter?code=1&x".into()).unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&file)), (0o700, 0o600));
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(page.contains("url=http://127.0.0.1:7070/enter?code=1&#38;x\""), "{page}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_is_removed_with_its_code() {
        for is_used in [true, false] {
            let (folder, file) = private_file(String::new()).unwrap();
            let begin = tokio::time::Instant::now();
            let used = async {
                if !is_used {
                    std::future::pending::<()>().await;
                }
            };
            remove_when_used(folder, used).await;
            assert!(!file.exists() && !file.parent().unwrap().exists());
            assert_eq!(begin.elapsed() >= FILE_FOR, !is_used);
        }
    }
}
