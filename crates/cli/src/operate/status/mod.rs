//! `comeback status`: the state of a deployment on one screen.

use std::io::Write as _;

use clap::Args;
use comeback_operate::Status;

use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::session::Session;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback status
  comeback status --handler my-retry-handler --json";

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(_arguments: &StatusArguments, session: Session) -> Result<(), Failure> {
    let work = async {
        let deployment = session.deployment().await?;
        Status::read(&session.account, &deployment).await
    };
    let status = session.interrupt.or(work).await?;
    let mut out = anstream::stdout();
    if session.common.json {
        writeln!(out, "{}", serde_json::json!(status))?;
    } else {
        writeln!(out, "waiting  {} in flight, {} delayed", status.in_flight, status.delayed)?;
    }
    Ok(())
}
