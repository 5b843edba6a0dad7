//! `comeback retry --watch`: how many of the events have been retried, by the handler's log.

use std::collections::HashSet;
use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;

use comeback_engine::Timestamp;
use indicatif::HumanCount;

use crate::clock::now;
use crate::operate::account::Failure;
use crate::operate::deployment::Deployment;
use crate::operate::log::{HandlerLine, LogEvent, Search};
use crate::operate::session::Session;
use crate::operate::waiting::Wanted;

/// Between two looks at the log. Its lines take some seconds to arrive.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long after the order's end the last lines may arrive.
const LINES_ARRIVE: Duration = Duration::from_secs(60);

/// Prints a line whenever the counts change, until every awaited retry was made or the time has ended: from when the
/// log was read to the end of the order. A retry is named by its event's key and its number.
pub(super) async fn follow(
    session: &Session,
    deployment: &Deployment,
    wanted: &Wanted,
    awaited: &HashSet<(String, u64)>,
    time: Range<Timestamp>,
) -> Result<(), Failure> {
    let end = time.end.saturating_add(LINES_ARRIVE);
    let mut out = anstream::stdout();
    let mut shown = None;
    loop {
        let search =
            Search { group: &deployment.log_group, term: "", since: time.start, until: None, stream: None };
        let mut counts = Counts::default();
        let take = |event: LogEvent| {
            if let Some(line) = HandlerLine::read(&event.message).filter(|line| wanted.takes(line)) {
                counts.take(line, awaited);
            }
        };
        search.each_by_pattern(&session.account, Some(wanted.pattern()), take).await?;
        let found = (counts.retried.len() as u64, counts.failed_again());
        if shown != Some(found) {
            let (retried, failed) = found;
            let again =
                if failed == 0 { String::new() } else { format!(", {} failed again", HumanCount(failed)) };
            let line =
                format!("{} of {} retried{again}", HumanCount(retried), HumanCount(awaited.len() as u64));
            // Nobody is left to read it.
            if writeln!(out, "{}  {line}", now()).is_err() {
                return Ok(());
            }
            shown = Some(found);
        }
        if counts.retried.len() == awaited.len() || now() > end {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = session.interrupt.raised() => return Ok(()),
        }
    }
}

/// Retries since an order, of events that waited when it was given. What such an event does afterwards does not count, nor
/// do events that failed later.
#[derive(Debug, Default)]
struct Counts {
    retried: HashSet<(String, u64)>,
    /// The ids of the retries' invocations, where Lambda named them.
    invocations: HashSet<String>,
    /// The ids of the invocations that failed.
    failed: HashSet<String>,
}

impl Counts {
    fn take(&mut self, line: HandlerLine, awaited: &HashSet<(String, u64)>) {
        // The invocation that failed before this line.
        self.failed.extend(line.request_id);
        let retry = (line.key, line.retry);
        if line.action == "reinvoke" && line.problem.is_none() && awaited.contains(&retry) {
            self.retried.insert(retry);
            self.invocations.extend(line.invoke_request_id);
        }
    }

    /// Of the retries, those that have failed.
    fn failed_again(&self) -> u64 {
        self.invocations.intersection(&self.failed).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_awaited_retry_counts_once_and_nothing_else_does() {
        let awaited =
            HashSet::from([("slow".to_owned(), 9), ("orders".to_owned(), 2), ("late".to_owned(), 4)]);
        let mut counts = Counts::default();
        let mut take =
            |action: &str, (key, retry): (&str, u64), ids: [Option<&str>; 2], problem: Option<&str>| {
                let line = json!({
                    "timestamp": "2026-11-22T09:12:10.431Z", "key": key, "retry": retry, "action": action,
                    "request_id": ids[0], "invoke_request_id": ids[1], "problem": problem,
                });
                counts.take(HandlerLine::read(&line.to_string()).unwrap(), &awaited);
            };
        take("reinvoke", ("orders", 2), [Some("r-0"), Some("r-1")], None);
        take("reinvoke", ("orders", 2), [Some("r-0"), Some("r-1")], None);
        take("defer", ("orders", 3), [Some("r-1"), None], None);
        take("reinvoke", ("orders", 3), [Some("r-1"), Some("r-2")], None);
        take("reinvoke", ("failed later", 1), [Some("r-5"), Some("r-6")], None);
        take("reinvoke", ("slow", 9), [Some("r-7"), None], Some("throttled"));
        take("reinvoke", ("late", 4), [Some("r-8"), None], None);
        assert_eq!((counts.retried.len(), counts.failed_again()), (2, 1));
    }
}
