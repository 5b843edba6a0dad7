//! `comeback pause` and `comeback resume`: hold retries for one function or for all functions, and resume them.

use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::Timestamp;
use comeback_operate::durations;
use comeback_operate::function::FunctionName;
use comeback_operate::pause::{PauseEnd, PauseRetries};
use comeback_operate::pauses::edits::{read_length, read_reason};
use comeback_operate::pauses::listing::pauses;
use comeback_operate::resume::ResumeRetries;

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal;

pub(crate) const PAUSE_EXAMPLES: &str = "\
Examples:
  comeback pause orders --reason 'deploy 4711 broke it'
  comeback pause --all --for 2h --reason 'network maintenance' --yes
  comeback pause orders --for 6h
  comeback pause --list --history";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["function", "all", "list"])))]
pub(crate) struct PauseArguments {
    /// Function as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// Every function
    #[arg(long)]
    all: bool,
    /// List open pauses and requests in force, and show who made them and why
    #[arg(long, conflicts_with = "dry_run")]
    list: bool,
    /// Also list who paused, changed and resumed what
    // `requires` alone would not refuse it beside the arguments that rule out `--list`.
    #[arg(long, requires = "list", conflicts_with_all = ["function", "all"])]
    history: bool,
    /// Reason, shown with the pause; required for a new pause
    #[arg(long, value_name = "TEXT", value_parser = read_reason)]
    reason: Option<String>,
    /// End the pause automatically at this RFC 3339 time [default: lasts until `comeback resume`]
    #[arg(long, value_name = "TIME", value_parser = crate::flags::moment, conflicts_with = "for_")]
    until: Option<Timestamp>,
    /// End the pause automatically after this time, at most 14 days
    #[arg(long = "for", value_name = "DURATION", value_parser = read_length)]
    for_: Option<Duration>,
    /// Spread the retries over this time once the pause ends [default: the time that the pause lasted, up to 30m]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    spread: Option<Duration>,
}

pub(crate) async fn pause(arguments: PauseArguments, session: Session) -> Result<(), CommandFailure> {
    let PauseArguments { function, list, history, until, for_, spread, reason, .. } = arguments;
    if list {
        return terminal::answer(&pauses(&session.operator(), history).await?, &session);
    }
    let end = until.map(PauseEnd::At).or(for_.map(PauseEnd::After));
    let pause = PauseRetries { function, end, spread, why: reason };
    terminal::change(pause, &session).await
}

pub(crate) const RESUME_EXAMPLES: &str = "\
Examples:
  comeback resume orders
  comeback resume --all --spread 2h --yes";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["function", "all"])))]
pub(crate) struct ResumeArguments {
    /// Function, named in the same way as when it was paused
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// End the pause that covers every function; pauses of individual functions stay in force. If the pauses are
    /// unreadable, put back their last readable version
    #[arg(long)]
    all: bool,
    /// Spread the retries over this time [default: the spread set for the pause, or else the time that it lasted, up to
    /// 30m]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    spread: Option<Duration>,
}

pub(crate) async fn resume(arguments: ResumeArguments, session: Session) -> Result<(), CommandFailure> {
    let ResumeArguments { function, spread, .. } = arguments;
    terminal::change(ResumeRetries { function, spread }, &session).await
}
#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::operate::session::OnDeployment;

    #[test]
    fn the_help_names_the_default() {
        let help =
            OnDeployment::<PauseArguments>::augment_args(Command::new("pause")).render_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let default = durations::text(comeback_operate::pauses::DEFAULT_SPREAD);
        assert!(
            help.contains(&format!("[default: the time that the pause lasted, up to {default}]")),
            "{help}"
        );
    }

    #[test]
    fn a_pause_has_a_reason_and_a_length() {
        let read = |arguments: &[&str]| {
            let all = ["pause", "orders"].iter().chain(arguments);
            OnDeployment::<PauseArguments>::augment_args(Command::new("pause"))
                .try_get_matches_from(all)
                .map(drop)
        };
        assert!(read(&["--reason", "why", "--for", "1s"]).is_ok());
        for (refused, why) in [
            (["--reason", "", "--for", "1s"], "must not be empty"),
            (["--reason", " ", "--for", "1s"], "must not be empty"),
            (["--reason", "{{x}}", "--for", "1s"], "must not contain {{"),
            (["--reason", "why", "--for", "0s"], "must be longer than 0"),
            (["--reason", "why", "--history", "--yes"], "cannot be used with"),
        ] {
            let error = read(&refused).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
