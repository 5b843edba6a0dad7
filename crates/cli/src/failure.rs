//! Failures of the command, with their texts and exit codes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comeback_operate::shown::shown_lines;
use comeback_rehearsal::Failure;

/// Failures of the command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFailure {
    /// Arguments were refused, or an invariant broke.
    #[error(transparent)]
    Rehearsal(#[from] Failure),
    /// No policy meets a plan's goal, with a sentence for each limit.
    #[error("no policy in the grid meets the goal; what stands in the way:\n       {}", .0.join("\n       "))]
    GoalNotMet(Vec<String>),
    /// A file could not be read or written.
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
    /// A refusal for one reason.
    pub(crate) fn refused(reason: impl ToString) -> Self {
        Failure::Refused(vec![reason.to_string()]).into()
    }

    pub(crate) fn write(path: &Path, problem: impl ToString) -> Self {
        BadFile::new(path, problem).into()
    }

    pub(crate) fn report(self) -> ExitCode {
        // A reader that stops early (`| head`) is fine.
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

/// A file that cannot be read (as JSON, as an SQS event) or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// The mistake, with its position in the file if it has one.
    pub problem: String,
}

impl BadFile {
    pub(crate) fn new(path: &Path, problem: impl ToString) -> Self {
        Self { path: path.to_owned(), problem: problem.to_string() }
    }

    /// The refusal of a file that was read, but has the wrong content.
    pub(crate) fn refused(self) -> CommandFailure {
        CommandFailure::refused(self)
    }
}
