//! Failures of the command, with their texts and exit codes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comeback_operate::shown::shown_lines;
use comeback_rehearsal::Failure;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFailure {
    /// An argument was refused, or a simulation broke an invariant.
    #[error(transparent)]
    Rehearsal(#[from] Failure),
    /// No policy meets the goal of `comeback plan`. The strings are the reasons.
    #[error("no policy in the grid meets the goal; what stands in the way:\n       {}", .0.join("\n       "))]
    GoalNotMet(Vec<String>),
    #[error(transparent)]
    BadFile(#[from] BadFile),
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    #[cfg(feature = "console")]
    #[error(transparent)]
    Operate(#[from] comeback_operate::Failure),
}

impl CommandFailure {
    pub(crate) fn refused(reason: impl ToString) -> Self {
        Failure::Refused(vec![reason.to_string()]).into()
    }

    pub(crate) fn write(path: &Path, problem: impl ToString) -> Self {
        BadFile::new(path, problem).into()
    }

    pub(crate) fn report(self) -> ExitCode {
        // A reader of standard output may stop early, as `head` does. That is not an error.
        if matches!(&self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        anstream::eprintln!("error: {}", shown_lines(&self.to_string()));
        ExitCode::from(match self {
            Self::BadFile(_) | Self::Output(_) => 1,
            Self::Rehearsal(Failure::Refused(_)) => 2,
            Self::Rehearsal(Failure::Violated { .. }) | Self::GoalNotMet(_) => 3,
            #[cfg(feature = "console")]
            Self::Operate(failure) => failure.exit_code(),
        })
    }
}

/// Error for a file that cannot be read or written, or has the wrong content.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct BadFile {
    /// Path to the file that cannot be read or written, or has the wrong content.
    pub path: PathBuf,
    /// The I/O error, or the problem with the file's content and, if known, its position in the file.
    pub problem: String,
}

impl BadFile {
    pub(crate) fn new(path: &Path, problem: impl ToString) -> Self {
        Self { path: path.to_owned(), problem: problem.to_string() }
    }

    /// Returns the failure of a command that refuses the file's content.
    pub(crate) fn refused(self) -> CommandFailure {
        CommandFailure::refused(self)
    }
}
