use std::io::{BufRead, IsTerminal as _, Write as _};

use comeback_operate::Failure;
use tokio::sync::oneshot;

use crate::operate::session::Session;

/// Asks on the terminal whether to go on. With `--yes` it goes on without asking. Where nobody can answer it does not.
pub(crate) async fn confirm(question: &str, session: &Session) -> Result<(), Failure> {
    if session.common.yes {
        return Ok(());
    }
    if session.common.json || !std::io::stdin().is_terminal() {
        return Err(Failure::NotConfirmed(
            "nothing was changed: pass --yes to go on without a question".into(),
        ));
    }
    anstream::eprint!("{question} [y/N] ");
    // A question that cannot be shown is not answered with yes.
    let _ = anstream::stderr().flush();
    let answer = session.interrupt.or(async { Ok(answer().await) }).await?;
    if is_yes(&answer) { Ok(()) } else { Err(Failure::NotConfirmed("nothing was changed".into())) }
}

/// A line from the terminal. Only a thread of its own can wait for it beside Ctrl-C.
async fn answer() -> String {
    let (send, answer) = oneshot::channel();
    std::thread::spawn(move || {
        let line = std::io::stdin().lock().lines().next().and_then(Result::ok);
        // Nobody waits for it after Ctrl-C.
        let _ = send.send(line.unwrap_or_default());
    });
    answer.await.unwrap_or_default()
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for yes in ["y", "Y", " yes ", "YES"] {
            assert!(is_yes(yes), "{yes}");
        }
        for no in ["", "n", "no", "yep", "y n"] {
            assert!(!is_yes(no), "{no}");
        }
    }
}
