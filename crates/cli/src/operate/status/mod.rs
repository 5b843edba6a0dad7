//! `comeback status`: the state of a deployment on one screen.
//!
//! | file | holds |
//! |---|---|
//! | `screen` | the screen as text |

mod screen;

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::Args;
use comeback_operate::Status;

use crate::clock::now;
use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::session::Session;

/// Between two screens of `--watch`. SQS's counts change no faster than that means anything.
const INTERVAL: Duration = Duration::from_secs(5);
/// Clears a terminal, and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback status
  comeback status --watch
  comeback status --handler my-retry-handler --json";

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Show it anew every five seconds, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &StatusArguments, session: Session) -> Result<(), Failure> {
    let interrupt = session.interrupt.clone();
    if !arguments.watch {
        return show(&interrupt.or(read(&session, None)).await?, &session);
    }
    let mut before = None;
    while !interrupt.is_raised() {
        let status = interrupt.or(read(&session, before.as_ref())).await?;
        if std::io::stdout().is_terminal() && !session.common.json {
            write!(std::io::stdout(), "{CLEAR}")?;
        }
        show(&status, &session)?;
        before = Some(status);
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = interrupt.raised() => {}
        }
    }
    Ok(())
}

async fn read(session: &Session, before: Option<&Status>) -> Result<Status, comeback_operate::Failure> {
    // Settings and mappings change while one watches.
    let deployment = session.deployment().await?;
    Status::read(&session.account, &deployment, before, now()).await
}

fn show(status: &Status, session: &Session) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    if session.common.json {
        writeln!(out, "{}", serde_json::json!(status))?;
    } else {
        write!(out, "{}", screen::text(status))?;
    }
    out.flush()?;
    Ok(())
}
