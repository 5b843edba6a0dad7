//! `comeback retry --watch`: how many of the events have been retried, by the handler's log.

use std::collections::HashSet;
use std::io::Write as _;
use std::time::Duration;

use comeback_engine::{RetryNow, Timestamp};
use indicatif::HumanCount;

use crate::clock::now;
use crate::operate::account::Failure;
use crate::operate::deployment::Deployment;
use crate::operate::log::{HandlerLine, LogEvent, Search};
use crate::operate::retry::reach::Reach;
use crate::operate::session::Session;
use crate::operate::waiting::Wanted;

/// Between two looks at the log. Its lines take some seconds to arrive.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long after the order's end the last lines may arrive.
const LINES_ARRIVE: Duration = Duration::from_secs(60);

/// Prints a line whenever the counts change, until every event was retried or the order has ended.
pub(super) async fn follow(
    session: &Session,
    deployment: &Deployment,
    wanted: &Wanted,
    order: &RetryNow,
    reach: &Reach,
    longest_hide: Duration,
) -> Result<(), Failure> {
    let end = order.end(longest_hide).saturating_add(LINES_ARRIVE);
    let mut out = anstream::stdout();
    let mut shown = None;
    loop {
        let search =
            Search { group: &deployment.log_group, term: "", since: order.at, until: None, stream: None };
        let mut counts = Counts::default();
        let take = |event: LogEvent| {
            if let Some(line) = HandlerLine::read(&event.message).filter(|line| wanted.takes(line)) {
                counts.take(&line, order.at);
            }
        };
        search.each_by_pattern(&session.account, Some(wanted.pattern()), take).await?;
        let found = (counts.retried.len() as u64, counts.failed_again());
        if shown != Some(found) {
            let (retried, failed) = found;
            let again =
                if failed == 0 { String::new() } else { format!(", {} failed again", HumanCount(failed)) };
            let line = format!("{} of {} retried{again}", HumanCount(retried), HumanCount(reach.reached));
            // Nobody is left to read it.
            if writeln!(out, "{}  {line}", now()).is_err() {
                return Ok(());
            }
            shown = Some(found);
        }
        if found.0 >= reach.reached || now() > end {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = session.interrupt.raised() => return Ok(()),
        }
    }
}

/// Retries since an order, of events that had failed before it.
#[derive(Debug, Default)]
struct Counts {
    /// The ids of the retries' invocations, or of their messages where Lambda did not name them.
    retried: HashSet<String>,
    /// The ids of the invocations that failed.
    failed: HashSet<String>,
}

impl Counts {
    fn take(&mut self, line: &HandlerLine, ordered: Timestamp) {
        // The invocation that failed before this line.
        self.failed.extend(line.request_id.clone());
        let is_retry = line.action == "reinvoke" && line.problem.is_none() && line.at() >= ordered;
        if is_retry {
            self.retried.extend(line.invoke_request_id.clone().or_else(|| line.message_id.clone()));
        }
    }

    /// Of the retries, those that have failed.
    fn failed_again(&self) -> u64 {
        self.retried.intersection(&self.failed).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn retries_and_their_failures_are_counted_once() {
        let at = Timestamp::from_secs(1_789_400_000);
        let mut counts = Counts::default();
        let mut take = |action: &str, request_id: &str, invoked: Option<&str>, problem: Option<&str>| {
            let line = json!({
                "timestamp": at.to_string(), "key": "k", "action": action, "request_id": request_id,
                "invoke_request_id": invoked, "message_id": "m", "problem": problem,
            });
            counts.take(&HandlerLine::read(&line.to_string()).unwrap(), at);
        };
        take("reinvoke", "r-0", Some("r-1"), None);
        take("reinvoke", "r-0", Some("r-1"), None);
        take("reinvoke", "r-5", Some("r-6"), None);
        take("reinvoke", "r-7", None, Some("throttled"));
        take("defer", "r-1", None, None);
        assert_eq!((counts.retried.len(), counts.failed_again()), (2, 1));
    }
}
