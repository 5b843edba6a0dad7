//! `comeback waiting`: which events wait, for what, and until when.
//!
//! SQS cannot list a queue, and shows nothing of a hidden message. The handler's log is the only index.

pub(crate) mod events;
mod notes;
pub(crate) mod reading;
pub(crate) mod report;
pub(crate) mod returns;
pub(crate) mod wanted;

use std::io::{BufWriter, Write as _};
use std::time::Duration;

use clap::Args;
use comeback_engine::Timestamp;

use crate::clock;
use crate::failure;
use crate::operate::session::{Common, Session};
use crate::operate::waiting::reading::{Reading, Scope};
use crate::operate::waiting::report::{Listing, write};
use crate::operate::waiting::wanted::{Wanted, no_error_matches};
use crate::text::durations;
use crate::text::terminal::shown;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback waiting
  comeback waiting orders --error 'Timeout*' --each
  comeback waiting --due-within 1h --each --limit 20
  comeback waiting --json";

#[derive(Debug, Args)]
pub(crate) struct WaitingArguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Only events whose next retry is due within this time
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    due_within: Option<Duration>,
    /// Also list each event, the first due first
    #[arg(long)]
    each: bool,
    /// Maximum events that --each lists
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// How far back to read the log [default: as far as an event can wait]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    since: Option<Duration>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(
    arguments: &WaitingArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let now = clock::now();
    let read = async {
        let deployment = session.deployment().await?;
        Reading::read(&session, deployment, arguments.scope(), now).await
    };
    let mut reading = session.interrupt.or(read).await?;
    reading.heed_pauses(now);
    let mut report = reading.report(&arguments.listing(now), now);
    report.notes.extend(reading.unlogged_qualifiers(&arguments.wanted));
    let result = reading.unknown_functions(&arguments.wanted).map_err(failure::CommandFailure::from);
    if session.common.json {
        session.print(&report, result.as_ref().err())?;
        return result;
    }
    let mut out = BufWriter::new(anstream::stdout().lock());
    write(&report, now, &mut out)?;
    out.flush()?;
    drop(out);
    let unmatched = tokio::select! {
        errors = reading.unmatched(&session, arguments.scope(), now) => errors,
        () = session.interrupt.raised() => None,
    };
    if let Some((glob, errors)) = arguments.wanted.error.as_ref().zip(unmatched) {
        anstream::eprintln!("note: {}", shown(&no_error_matches(glob, &errors)));
    }
    result
}

impl WaitingArguments {
    fn scope(&self) -> Scope<'_> {
        Scope { wanted: &self.wanted, since: self.since }
    }

    /// The log was read with the filter, so that nothing is left to filter but by time.
    fn listing(&self, now: Timestamp) -> Listing {
        let by = self.due_within.map(|within| now.saturating_add(within));
        Listing { wanted: Wanted::default(), by, events: self.each.then_some(0..self.limit as usize) }
    }
}
