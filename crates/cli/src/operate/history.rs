//! `comeback history`: lists what operators have changed.

use std::time::Duration;

use clap::Args;
use comeback_operate::activity::recorded;
use comeback_operate::durations;

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback history
  comeback history --since 24h --json";

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Only changes made less than this long ago [default: all changes still in the handler's log]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    since: Option<Duration>,
}

pub(crate) async fn run(arguments: HistoryArguments, session: Session) -> Result<(), CommandFailure> {
    terminal::answer(&recorded(&session.operator(), arguments.since).await?, &session)
}
