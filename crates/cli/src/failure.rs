//! Failures of the command, with their texts and exit codes.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use comeback_operate::Failure;
use comeback_operate::shown::shown_lines;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFailure {
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    #[error(transparent)]
    Other(#[from] Failure),
}

impl CommandFailure {
    pub(crate) fn report(self) -> ExitCode {
        // A reader of standard output may stop early, as `head` does. That is not an error.
        if matches!(&self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        anstream::eprintln!("error: {}", shown_lines(&self.to_string()));
        ExitCode::from(match self {
            Self::Output(_) => 1,
            Self::Other(failure) => failure.exit_code(),
        })
    }
}

/// The failure for a file that cannot be read or written.
pub(crate) fn inaccessible(path: &Path, problem: impl Display) -> Failure {
    Failure::could_not(format!("{}: {problem}", path.display()))
}

/// The failure for a file with the wrong content.
pub(crate) fn bad_content(path: &Path, problem: impl Display) -> Failure {
    Failure::refused(format!("{}: {problem}", path.display()))
}
