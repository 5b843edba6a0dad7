//! `comeback trace ID`: one event's life as a timeline.
//!
//! | file | holds |
//! |---|---|
//! | `timeline` | the timeline as text |

mod timeline;

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use comeback_engine::Timestamp;
use comeback_operate::Trace;

use crate::clock::now;
use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::session::Session;
use crate::text::durations;
use crate::text::terminal::Progress;

pub(crate) use timeline::sentence;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --logs --since 2d
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --json";

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// The event's key (origin_request_id), or the request id of one of its invocations
    #[arg(value_name = "KEY|REQUEST_ID")]
    id: String,
    /// Add the target's own log lines of each invocation
    #[arg(long)]
    logs: bool,
    /// How far back to search
    #[arg(long, value_name = "DURATION", default_value = "14d", value_parser = durations::read)]
    since: Duration,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &TraceArguments, session: Session) -> Result<(), Failure> {
    let now = now();
    let since = Timestamp::from_millis(0)
        .saturating_add(now.since(Timestamp::from_millis(0)).saturating_sub(arguments.since));
    let progress = Progress::endless("searching the log: {pos} lines");
    let work = async {
        let deployment = session.deployment().await?;
        let found = |lines: usize| progress.set(lines as u64);
        Trace::find(&session.account, &deployment, &arguments.id, since, arguments.logs, &found).await
    };
    let trace = session.interrupt.or(work).await?;
    drop(progress);
    let mut out = anstream::stdout();
    if session.common.json {
        writeln!(out, "{}", serde_json::json!(trace))?;
    } else {
        write!(out, "{}", timeline::text(&trace, now))?;
    }
    Ok(())
}
