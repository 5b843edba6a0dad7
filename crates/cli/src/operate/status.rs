//! `comeback status`: the state of a deployment on one screen.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::Args;
use comeback_operate::Answer as _;
use comeback_operate::status::status;

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal;

/// Time between two refreshes with `--watch`.
const INTERVAL: Duration = Duration::from_secs(5);
/// The escape sequence that clears the terminal and moves the cursor to the top-left corner.
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
}

pub(crate) async fn run(arguments: StatusArguments, session: Session) -> Result<(), CommandFailure> {
    let operator = session.operator();
    let mut before = status(&operator, arguments.history, None).await?;
    if !arguments.watch {
        return terminal::answer(&before, &session);
    }
    loop {
        if std::io::stdout().is_terminal() {
            write!(std::io::stdout(), "{CLEAR}{}\n\n", operator.headline())?;
        }
        terminal::draw(&before.layout(), &session)?;
        tokio::select! {
            () = operator.account.aws.sleep(INTERVAL) => {}
            () = session.interrupt.raised() => return Ok(()),
        }
        before = status(&operator, arguments.history, Some(&before)).await?;
    }
}
