//! The output of `comeback waiting`: the waiting events, with the reason for each wait and the time when it ends.
//!
//! The events come from the handler's log, because SQS cannot list a queue's messages.

pub mod events;
pub mod filter;
pub mod functions;
mod notes;
pub mod reading;
pub mod recent;
pub mod report;
pub mod returns;

use std::time::Duration;

use comeback_engine::Timestamp;

use crate::failure::Failure;
use crate::operator::Operator;
use crate::text::Text;
use crate::waiting::filter::WaitingFilter;
use crate::waiting::reading::{LogQuery, Reading};
use crate::waiting::report::{ReportQuery, WaitingReport};

/// The waiting events in a deployment, ready to be [reported](Self::report).
#[derive(Debug)]
pub struct Waiting {
    reading: Reading,
    listing: ReportQuery,
    now: Timestamp,
    unmatched: Option<Text>,
}

/// Finds a deployment's waiting events in the handler's log. `listing` gets the report's time, and selects the events
/// to report. `since` is the maximum age of the log lines to read, or `None` for the longest time that an event can
/// wait.
///
/// # Errors
///
/// Fails if the deployment, its queue or its log cannot be read.
pub async fn waiting(
    operator: &Operator,
    listing: impl FnOnce(Timestamp) -> ReportQuery,
    since: Option<Duration>,
) -> Result<Waiting, Failure> {
    let deployment = operator.deployment().await?;
    let now = operator.now();
    let listing = listing(now);
    let wanted = &listing.wanted;
    let scope = LogQuery { since, ..LogQuery::of(wanted) };
    let read = async {
        let mut reading = Reading::read(operator, deployment, scope, now).await?;
        reading.apply_pauses(now);
        let errors = reading.unmatched(operator, scope, now).await;
        Ok::<_, Failure>((reading, errors))
    };
    let (reading, errors) = operator.interrupt.or(read).await?;
    let unmatched = wanted.error.as_ref().zip(errors).map(|(glob, errors)| no_error_matches(glob, &errors));
    Ok(Waiting { reading, unmatched: unmatched.map(Text::from), listing, now })
}

/// A note that an error glob matches no waiting event. The note lists the errors of the waiting events.
pub fn no_error_matches(glob: &str, errors: &str) -> String {
    format!("no event has an error that matches {glob}; the errors are: {errors}")
}

impl Waiting {
    /// The report on the waiting events that the listing selects.
    pub fn report(&self) -> WaitingReport<'_> {
        let Self { reading, listing: ReportQuery { wanted, due, events }, now, unmatched } = self;
        // The log was read with the filter, so the report filters only by due time.
        let listing = ReportQuery { wanted: WaitingFilter::default(), due: *due, events: events.clone() };
        let mut report = reading.report(&listing, *now);
        report.notes.extend(reading.unlogged_qualifiers(wanted));
        report.unmatched.clone_from(unmatched);
        report.end = reading.unknown_functions(wanted);
        report
    }
}
