use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comeback_engine::SettingError;
use comeback_timelapse::ScenarioError;

use crate::event_file::BadFile;

/// How the command ends when it does not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Arguments that were refused: each of them.
    #[error("{}", .0.join("\n       "))]
    Refused(Vec<String>),
    /// A file with events that is not readable.
    #[error(transparent)]
    BadFile(#[from] BadFile),
    /// A file that could not be written.
    #[error("{}: {problem}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// Standard output is gone.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    /// Lists everything that was refused of a policy and a scenario, if anything was.
    pub(crate) fn refused(policy: Vec<SettingError>, scenario: Vec<ScenarioError>) -> Self {
        let policy = policy.iter().map(ToString::to_string);
        let scenario = scenario.iter().map(|error| format!("--{error}"));
        Self::Refused(policy.chain(scenario).collect())
    }

    pub(crate) fn write(path: &Path, problem: impl ToString) -> Self {
        Self::Write { path: path.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn report(self) -> ExitCode {
        // A reader that has seen enough (`| head`) is no failure.
        if matches!(&self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        anstream::eprintln!("error: {self}");
        ExitCode::from(if matches!(self, Self::Refused(_)) { 2 } else { 1 })
    }
}
