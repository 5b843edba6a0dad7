//! `comeback attach`: send the failures of a function to Comeback.

use clap::Args;
use comeback_operate::{Attachment, FunctionName};

use crate::failure;
use crate::operate::carry_out::{CarryOut, carry_out};
use crate::operate::common::Common;
use crate::operate::session::Session;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback attach orders --dry-run
  comeback attach orders:live --yes
  comeback attach orders --handler my-retry-handler --json --yes";

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// The function, as NAME, NAME:ALIAS, NAME:VERSION or ARN; callers' failures count where they invoke it
    #[arg(value_name = "FUNCTION[:ALIAS]")]
    pub(crate) function: FunctionName,
    /// Show the changes, and make none of them
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &AttachArguments, session: Session) -> Result<(), failure::Failure> {
    // All is read anew each time: the changes are seen only that way.
    let plan = async || {
        let deployment = session.deployment().await?;
        let attachment = Attachment::read(&session.account, &deployment, &arguments.function).await?;
        attachment.attach()
    };
    let order = CarryOut {
        verb: "attach",
        function: &arguments.function,
        dry_run: arguments.dry_run,
        nothing: "it is attached, and nothing is to be changed",
    };
    carry_out(&order, &session, plan).await?;
    Ok(())
}
