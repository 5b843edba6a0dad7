//! `comeback status`: the state of a deployment on one screen.

pub(crate) mod state;
pub(crate) mod text;

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::Args;

use crate::account::Failure;
use crate::failure;
use crate::operate::session::{Common, Session};
use crate::operate::status::state::Status;
use crate::operate::status::text::text;

/// Between two screens of `--watch`. SQS's counts are a minute old anyway.
const INTERVAL: Duration = Duration::from_secs(5);
/// Clears a terminal, and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback status
  comeback status --watch
  comeback status --history
  comeback status --handler my-retry-handler --json";

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Refresh every five seconds until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Also show what arrived, was retried and was dead-lettered in the last 3 and 24 hours
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(
    arguments: &StatusArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let mut before = None;
    let mut out = anstream::stdout();
    loop {
        let status = session.interrupt.or(Status::read(&session, before.as_ref(), arguments.history)).await?;
        session.answer(&status);
        if !session.common.json {
            if arguments.watch && std::io::stdout().is_terminal() {
                write!(std::io::stdout(), "{CLEAR}{}\n\n", session.headline())?;
            }
            write!(out, "{}", text(&status, &session.common.place_flags()))?;
        }
        out.flush()?;
        if !arguments.watch {
            if let Some(failure) = status.unread.values().next().cloned() {
                return Err(failure.into());
            }
            let Some(why) = status.why_stopped() else { return Ok(()) };
            let fix = format!("`comeback doctor --short{}` names the fix", session.common.place_flags());
            return Err(Failure::Undone(format!("{why}; {fix}")).into());
        }
        before = Some(status);
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = session.interrupt.raised() => return Ok(()),
        }
    }
}
