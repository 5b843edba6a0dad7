//! `comeback detach`: leave the failures of a function to Lambda again.

use clap::Args;
use comeback_operate::{Attachment, Failure, FunctionName, Leaving};

use crate::clock::now;
use crate::failure;
use crate::operate::carry_out::{CarryOut, carry_out};
use crate::operate::common::Common;
use crate::operate::session::Session;
use crate::text::terminal::Progress;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback detach orders --dry-run
  comeback detach orders:live --yes
  comeback detach orders --now --yes";

#[derive(Debug, Args)]
pub(crate) struct DetachArguments {
    /// The function, as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION[:ALIAS]")]
    pub(crate) function: FunctionName,
    /// Show the changes, and make none of them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not wait for the function's events: those that still wait go to the dead-letter queue
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &DetachArguments, session: Session) -> Result<(), failure::Failure> {
    let account = &session.account;
    // All is read anew each time, as of then: the time that is kept must not be before the destination goes.
    let plan = async || {
        let deployment = session.deployment().await?;
        let attachment = Attachment::read(account, &deployment, &arguments.function).await?;
        let progress = Progress::endless("reading the handler's log: {pos} lines");
        let read = |lines: usize| progress.set(lines as u64);
        let leaving = Leaving::read(account, &deployment, &attachment, arguments.now, now(), &read).await?;
        attachment.detach(&leaving)
    };
    let order = CarryOut {
        verb: "detach",
        function: &arguments.function,
        dry_run: arguments.dry_run,
        nothing: "it is not attached, and nothing is to be changed",
    };
    let planned = carry_out(&order, &session, plan).await?;
    match planned.left {
        // The run that takes the destination away has done all that can be done by now.
        Some(left) if planned.changes.is_empty() => {
            let or = if arguments.now { "" } else { ", or give up what waits with --now" };
            let what = format!(
                "{} is not detached completely: {left}; repeat the command later{or}",
                arguments.function
            );
            Err(Failure::Undone(what).into())
        }
        _ => Ok(()),
    }
}
