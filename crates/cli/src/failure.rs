//! Failures of the command, with their texts and exit codes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comeback_engine::SettingError;
use comeback_timelapse::{RunError, ScenarioError, Violation};

use crate::text::terminal::shown_lines;

/// Failures of the command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFailure {
    /// Arguments were refused, with the reason for each.
    #[error("{}", .0.join("\n       "))]
    Refused(Vec<String>),
    /// An invariant broke: a bug in Comeback.
    #[error("an invariant was {violation}\nrepeat with: {repeat}\nreport this text as a bug")]
    Violated { violation: Box<Violation>, repeat: String },
    /// No policy meets a plan's goal, with a sentence for each limit.
    #[error("no policy in the grid meets the goal; what stands in the way:\n       {}", .0.join("\n       "))]
    GoalNotMet(Vec<String>),
    /// A file could not be read or written.
    #[error(transparent)]
    BadFile(#[from] BadFile),
    /// Standard output is gone.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    /// A command on a deployment failed.
    #[cfg(feature = "operate")]
    #[error(transparent)]
    Operate(#[from] crate::account::Failure),
}

#[cfg(feature = "operate")]
impl From<comeback_operate::Failure> for CommandFailure {
    fn from(failure: comeback_operate::Failure) -> Self {
        crate::account::Failure::from(failure).into()
    }
}

impl CommandFailure {
    /// Lists everything refused in a policy and a scenario.
    pub(crate) fn refused(policy: Vec<SettingError>, scenario: Vec<ScenarioError>) -> Self {
        let policy = policy.iter().map(ToString::to_string);
        let scenario = scenario.iter().map(|error| format!("--{error}"));
        Self::Refused(policy.chain(scenario).collect())
    }

    /// Why clap refuses a command line, without how it should look.
    #[cfg(feature = "operate")]
    pub(crate) fn of_command_line(error: &clap::Error) -> Self {
        let error = error.to_string();
        let why = error.split("\n\n").next().unwrap_or_default();
        Self::Refused(vec![why.strip_prefix("error: ").unwrap_or(why).trim().to_owned()])
    }

    /// Both values, or everything that was refused in either.
    pub(crate) fn unless_both<P, S>(
        policy: Result<P, Vec<SettingError>>,
        scenario: Result<S, Vec<ScenarioError>>,
    ) -> Result<(P, S), Self> {
        match (policy, scenario) {
            (Ok(policy), Ok(scenario)) => Ok((policy, scenario)),
            (policy, scenario) => {
                Err(Self::refused(policy.err().unwrap_or_default(), scenario.err().unwrap_or_default()))
            }
        }
    }

    /// Why a run of a checked scenario has no summary.
    pub(crate) fn of_run(error: RunError, repeat: String) -> Self {
        match error {
            RunError::Refused(scenario) => Self::refused(Vec::new(), scenario),
            RunError::Violated(violation) => Self::Violated { violation, repeat },
            RunError::Multiplied { .. } => Self::Refused(vec![error.to_string()]),
        }
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
            Self::Refused(_) => 2,
            Self::Violated { .. } | Self::GoalNotMet(_) => 3,
            #[cfg(feature = "operate")]
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
    /// What is wrong, with the position in the file where there is one.
    pub problem: String,
}

impl BadFile {
    pub(crate) fn new(path: &Path, problem: impl ToString) -> Self {
        Self { path: path.to_owned(), problem: problem.to_string() }
    }

    /// The refusal of a file that was read and does not hold what the command takes.
    pub(crate) fn refused(self) -> CommandFailure {
        CommandFailure::Refused(vec![self.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_timelapse::Invariant;

    use super::*;

    #[test]
    fn a_broken_invariant_exits_with_3_and_names_the_command_that_repeats_it() {
        let violation = Violation {
            invariant: Invariant::AllowList,
            seed: 7,
            at: Duration::from_secs(3_661),
            event: Some(comeback_timelapse::EventNumber(3)),
            detail: "payroll was invoked".into(),
            history: "+01:01:00.000 event 3 attempt 0 failed: TargetDown\n".into(),
            trace: "+01:01:00.500 event 4 attempt 0 succeeded\n".into(),
        };
        let repeat = "comeback simulate --chaos --seed 7".to_owned();
        let failure = CommandFailure::of_run(RunError::Violated(Box::new(violation)), repeat);
        let expected = "\
an invariant was broken with seed 7 at +01:01:01.000: a function off the list is never invoked
event 3: payroll was invoked
its history:
+01:01:00.000 event 3 attempt 0 failed: TargetDown
the run's last lines:
+01:01:00.500 event 4 attempt 0 succeeded
repeat with: comeback simulate --chaos --seed 7
report this text as a bug";
        assert_eq!(failure.to_string(), expected);
        assert_eq!(failure.report(), ExitCode::from(3));
    }

    #[test]
    fn a_run_that_would_hardly_end_is_refused() {
        let event = Some(comeback_timelapse::EventNumber(3));
        let error = RunError::Multiplied { event, most: 10_000, at: Duration::from_secs(3_661) };
        let failure = CommandFailure::of_run(error, String::new());
        let expected = "at +01:01:01.000, the faults had given event 3 more than 10000 copies; lower a \
                        fault's rate, or shorten its window or the run";
        assert_eq!(failure.to_string(), expected);
        assert_eq!(failure.report(), ExitCode::from(2));
    }
}
