//! Failures of the command, with their texts and exit codes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comeback_operate::shown::shown_lines;
use comeback_rehearsal::Failure;

/// Reasons why a `comeback` command fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFailure {
    /// An argument was refused, or a simulation broke an invariant.
    #[error(transparent)]
    Rehearsal(#[from] Failure),
    /// No policy meets the goal of `comeback plan`. Contains a sentence for each reason.
    #[error("no policy in the grid meets the goal; what stands in the way:\n       {}", .0.join("\n       "))]
    GoalNotMet(Vec<String>),
    /// A file could not be read or written, or has the wrong content.
    #[error(transparent)]
    BadFile(#[from] BadFile),
    /// Standard output could not be written.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    /// A command on a deployment failed.
    #[cfg(feature = "console")]
    #[error(transparent)]
    Operate(#[from] comeback_operate::Failure),
}

impl CommandFailure {
    /// A failure for a refused argument, with the reason for the refusal.
    pub(crate) fn refused(reason: impl ToString) -> Self {
        Failure::Refused(vec![reason.to_string()]).into()
    }

    pub(crate) fn write(path: &Path, problem: impl ToString) -> Self {
        BadFile::new(path, problem).into()
    }

    pub(crate) fn report(self) -> ExitCode {
        // A reader of standard output that stops early, such as `| head`, is not an error.
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

/// A file that cannot be read (as text, as JSON, as an SQS event) or cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct BadFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The mistake or I/O error, with the position in the file if the position is known.
    pub problem: String,
}

impl BadFile {
    pub(crate) fn new(path: &Path, problem: impl ToString) -> Self {
        Self { path: path.to_owned(), problem: problem.to_string() }
    }

    /// Returns the failure for a file that could be read but has the wrong content.
    pub(crate) fn refused(self) -> CommandFailure {
        CommandFailure::refused(self)
    }
}
