use std::io::{BufRead, IsTerminal as _, Write as _};

use comeback_operate::Failure;

use crate::operate::common::Common;

/// Asks on the terminal whether to go on. With `--yes` it goes on without asking. Where nobody can answer it does not.
pub(crate) fn confirm(question: &str, common: &Common) -> Result<(), Failure> {
    if common.yes {
        return Ok(());
    }
    if common.json || !std::io::stdin().is_terminal() {
        return Err(Failure::NotConfirmed(
            "nothing was changed: pass --yes to go on without a question".into(),
        ));
    }
    anstream::eprint!("{question} [y/N] ");
    // A question that cannot be shown is not answered with yes.
    let _ = anstream::stderr().flush();
    let answer = std::io::stdin().lock().lines().next().and_then(Result::ok).unwrap_or_default();
    if is_yes(&answer) { Ok(()) } else { Err(Failure::NotConfirmed("nothing was changed".into())) }
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
