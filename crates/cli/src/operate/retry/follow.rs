//! `comeback retry --watch`: how many of the events have been retried, by the handler's log.

use std::collections::HashSet;
use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;

use comeback_engine::{LogLine, Timestamp, What};
use indicatif::HumanCount;

use comeback_operate::Failure;
use comeback_operate::aws::LogEvent;
use comeback_operate::deployment::Deployment;
use comeback_operate::log::Search;
use comeback_operate::waiting::wanted::Wanted;

use crate::clock::now;
use crate::operate::session::Session;
use crate::text::numbers::counted;

/// Between two reads of the log. Its lines take some seconds to arrive.
const INTERVAL: Duration = Duration::from_secs(10);
/// How late a line may arrive, and so how long after the request's end the last ones do.
const LINES_ARRIVE: Duration = Duration::from_secs(60);
/// How long after the last retry the watching goes on: most that fail again do it in this time.
const FAILURES_ARRIVE: Duration = Duration::from_secs(20);

/// The retries that a request brings forward, in a deployment's log.
pub(super) struct Watched<'a> {
    pub(super) session: &'a Session,
    pub(super) deployment: &'a Deployment,
    pub(super) wanted: &'a Wanted,
    /// Each by its event's key and its number.
    pub(super) awaited: &'a HashSet<(String, u64)>,
    /// From when the log was read to the end of the request.
    pub(super) time: Range<Timestamp>,
}

/// Prints a line whenever the counts change, until every awaited retry was made and may have failed, or the time has ended.
pub(super) async fn follow(watched: &Watched<'_>) -> Result<(), Failure> {
    let Watched { session, awaited, .. } = *watched;
    let mut end = watched.time.end.saturating_add(LINES_ARRIVE);
    let mut out = anstream::stdout();
    let (mut shown, mut counts) = (None, Counts::default());
    loop {
        counts.read(watched).await?;
        let (now, found) = (now(), (counts.retried.len(), counts.failed_again()));
        if counts.retried.len() == awaited.len() && shown.is_none_or(|(retried, _)| retried < found.0) {
            end = end.min(now.saturating_add(FAILURES_ARRIVE));
        }
        // Nobody is left to read it.
        if shown != Some(found) && writeln!(out, "{now}  {}", counts.in_words(awaited.len())).is_err() {
            return Ok(());
        }
        shown = Some(found);
        if now > end {
            let left = awaited.len() - counts.retried.len();
            if let Some(line) = left_over(left, &session.common.place_flags()) {
                // The request stands all the same.
                let _ = writeln!(out, "{now}  {line}");
            }
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = session.interrupt.raised() => return Ok(()),
        }
    }
}

/// What is left when a request ends: the log may have lost a line, or the handler was behind.
fn left_over(left: usize, place: &str) -> Option<String> {
    let events = counted(left as u64, "event has", "events have");
    (left > 0).then(|| {
        format!(
            "the request has ended, but {events} no retry in the log; `comeback waiting{place}` shows what \
             still waits"
        )
    })
}

/// Retries since a request, of events that waited when it was given. What such an event does afterwards does not count, nor
/// do events that failed later.
#[derive(Debug, Default)]
struct Counts {
    retried: HashSet<(String, u64)>,
    /// The ids of the retries' invocations, where Lambda named them.
    invocations: HashSet<String>,
    /// The ids of the invocations that failed.
    failed: HashSet<String>,
    /// The time of the last line.
    last: Option<Timestamp>,
}

impl Counts {
    /// Reads on in the log.
    async fn read(&mut self, watched: &Watched<'_>) -> Result<(), Failure> {
        let Watched { session, deployment, wanted, awaited, ref time } = *watched;
        let (group, since) = (deployment.log_group.as_str(), self.read_from(time.start));
        let search = Search { group, term: "", since, until: None, stream: None };
        let take = |page: Vec<LogEvent>| {
            for event in page {
                self.last = self.last.max(Some(event.at));
                let Ok(line) = LogLine::read(&event.message) else { continue };
                if line.event.as_ref().is_some_and(|about| wanted.takes(about)) {
                    self.take(line, awaited);
                }
            }
        };
        search.pages_by_pattern(&session.operator().account, Some(wanted.pattern()), take).await?;
        Ok(())
    }

    /// Lines arrive in no certain order. One that is read twice counts once.
    fn read_from(&self, start: Timestamp) -> Timestamp {
        self.last.map_or(start, |last| last.before(LINES_ARRIVE).max(start))
    }

    fn take(&mut self, line: LogLine<'_>, awaited: &HashSet<(String, u64)>) {
        let Some(event) = line.event else { return };
        // The invocation that failed before this line.
        self.failed.extend(event.request_id.map(Into::into));
        let retry = (event.key.into(), event.retry);
        if let What::Reinvoke { invoke_request_id, .. } = line.what
            && awaited.contains(&retry)
        {
            self.retried.insert(retry);
            self.invocations.extend(invoke_request_id.map(Into::into));
        }
    }

    /// Of the retries, those that have failed.
    fn failed_again(&self) -> u64 {
        self.invocations.intersection(&self.failed).count() as u64
    }

    fn in_words(&self, awaited: usize) -> String {
        let again = match self.failed_again() {
            0 => String::new(),
            failed => format!(", {} failed again", HumanCount(failed)),
        };
        format!("{} of {} retried{again}", HumanCount(self.retried.len() as u64), HumanCount(awaited as u64))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operate::log::tests::test_line;

    #[test]
    fn each_awaited_retry_counts_once_and_nothing_else_does() {
        let awaited =
            HashSet::from([("slow".to_owned(), 9), ("orders".to_owned(), 2), ("late".to_owned(), 4)]);
        let mut counts = Counts::default();
        let mut take = |action: &str, (key, retry): (&str, u64), ids: [Option<&str>; 2]| {
            let line = json!({
                "key": key, "retry": retry, "action": action, "request_id": ids[0], "invoke_request_id": ids[1],
                "due": "2026-11-22T09:12:10.431Z", "due_by": "policy", "delay": 9, "cause": "refused",
            });
            counts.take(test_line(line), &awaited);
        };
        take("reinvoke", ("orders", 2), [Some("r-0"), Some("r-1")]);
        take("reinvoke", ("orders", 2), [Some("r-0"), Some("r-1")]);
        take("defer", ("orders", 3), [Some("r-1"), None]);
        take("reinvoke", ("orders", 3), [Some("r-1"), Some("r-2")]);
        take("reinvoke", ("failed later", 1), [Some("r-5"), Some("r-6")]);
        take("keep", ("slow", 9), [Some("r-7"), None]);
        take("reinvoke", ("late", 4), [Some("r-8"), None]);
        assert_eq!(counts.in_words(awaited.len()), "2 of 3 retried, 1 failed again");
    }

    #[test]
    fn the_log_is_read_on_from_its_last_line() {
        let at = Timestamp::from_secs;
        let from = |last: Option<Timestamp>| Counts { last, ..Counts::default() }.read_from(at(1_000));
        assert_eq!(
            [None, Some(at(1_030)), Some(at(5_000))].map(from),
            [at(1_000), at(1_000), at(5_000 - LINES_ARRIVE.as_secs())]
        );
    }

    #[test]
    fn what_an_order_has_left_is_said_at_its_end() {
        let left = |left| left_over(left, " --stack shop");
        let rest = "no retry in the log; `comeback waiting --stack shop` shows what still waits";
        assert_eq!(left(0), None);
        assert_eq!(left(1), Some(format!("the request has ended, but 1 event has {rest}")));
        assert_eq!(left(2_000), Some(format!("the request has ended, but 2,000 events have {rest}")));
    }
}
