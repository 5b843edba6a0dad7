//! `comeback trace ID`: one event's life as a timeline.

pub(crate) mod ending;
pub(crate) mod logs;
pub(crate) mod story;
pub(crate) mod text;

use std::io::Write as _;
use std::time::Duration;

use clap::Args;

use crate::clock::now;
use crate::failure::CommandFailure;
use crate::operate::session::{Common, Session};
use crate::operate::trace::logs::{Logs, Trace};
use crate::operate::trace::text::text;
use crate::text::durations;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --logs --since 2d
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --json";

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// The event's key (origin_request_id), or the request id of any of its invocations
    #[arg(value_name = "KEY|REQUEST_ID")]
    id: String,
    /// Include the function's own log lines of each invocation
    #[arg(long)]
    logs: bool,
    /// How far back to search
    #[arg(long, value_name = "DURATION", default_value = "14d", value_parser = durations::read)]
    since: Duration,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &TraceArguments, session: Session) -> Result<(), CommandFailure> {
    let now = now();
    let since = now.before(arguments.since);
    let progress = session.progress(None, "searching the log: {pos} lines");
    let work = async {
        let deployment = session.deployment().await?;
        let found = |lines: usize| progress.set(lines as u64);
        let logs = Logs { account: &session.account, deployment: &deployment, since, progress: &found };
        Trace::find(&logs, &arguments.id, arguments.logs).await
    };
    let trace = session.interrupt.or(work).await?;
    drop(progress);
    session.answer(&trace);
    if !session.common.json {
        write!(anstream::stdout(), "{}", text(&trace, now, &session.common.place_flags()))?;
    }
    Ok(())
}
