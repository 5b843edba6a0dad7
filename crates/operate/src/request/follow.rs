//! Watches the handler's log for the retries made at an operator's request.

use std::collections::HashSet;
use std::time::Duration;

use comeback_engine::{LogLine, Timestamp, What};

use crate::account::Account;
use crate::aws::{LogEvent, LogFilter};
use crate::change::Completed;
use crate::command::CommandName;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::operator::Operator;
use crate::request::RequestPlan;
use crate::request::reach::Reach;
use crate::text;
use crate::text::{Text, quoted};

/// The time between two reads of the log.
const INTERVAL: Duration = Duration::from_secs(10);
/// The maximum delay before a line appears in the log.
const LINES_ARRIVE: Duration = Duration::from_secs(60);
/// The time to wait for failures after the last retry.
const FAILURES_ARRIVE: Duration = Duration::from_secs(20);

impl Completed<RequestPlan> {
    /// Returns true if the log shows an event that the request affects.
    pub fn can_be_followed(&self) -> bool {
        !self.plan.reach.retries.is_empty()
    }

    /// Watches the handler's log for the retries that the request makes due. Calls `say` with the numbers of retries
    /// and new failures whenever one of them changes. Returns soon after the last awaited retry, at the end of the
    /// request, or when the operator interrupts.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read, or if `say` fails.
    pub async fn follow<E: From<Failure>>(
        &self,
        operator: &Operator,
        mut say: impl FnMut(Text) -> Result<(), E>,
    ) -> Result<(), E> {
        let RequestPlan { reach: Reach { retries: awaited, .. }, begin, requested, .. } = &self.plan;
        let last_moment = requested.as_ref().map_or(*begin, |request| request.0.last_moment());
        let mut end = last_moment.saturating_add(LINES_ARRIVE);
        let (mut said, mut counts) = (None, Counts::default());
        loop {
            counts.read(&self.plan, &operator.account).await?;
            let (now, found) = (operator.now(), (counts.retried.len(), counts.failed_again()));
            if counts.retried.len() == awaited.len() && said.is_none_or(|(retried, _)| retried < found.0) {
                end = end.min(now.saturating_add(FAILURES_ARRIVE));
            }
            if said != Some(found) {
                say(text![now, "  ", counts.in_words(awaited.len())])?;
            }
            said = Some(found);
            if now > end {
                return match self.left_over(counts.retried.len()) {
                    Some(left) => say(text![now, "  ", left]),
                    None => Ok(()),
                };
            }
            tokio::select! {
                () = operator.account.aws.sleep(INTERVAL) => {}
                () = operator.interrupt.raised() => return Ok(()),
            }
        }
    }

    /// Returns a note for a request that has ended, if some of its events have no retry in the log.
    fn left_over(&self, retried: usize) -> Option<Text> {
        let left = self.plan.reach.retries.len() - retried;
        let events = counted(left as u64, "event has", "events have");
        let waiting = quoted(self.plan.deployment.command(CommandName::Waiting, [""; 0]));
        (left > 0).then(|| {
            text![
                format!("the request has ended, but {events} no retry in the log; "),
                waiting,
                " shows what still waits"
            ]
        })
    }
}

/// Counts of the retries made since a request, and of those that failed. Only retries in [`Reach::retries`] count.
#[derive(Debug, Default)]
struct Counts {
    retried: HashSet<(String, u64)>,
    /// The request ids that Lambda returned for the retries' invocations.
    invocations: HashSet<String>,
    failed: HashSet<String>,
    last: Option<Timestamp>,
}

impl Counts {
    async fn read(&mut self, plan: &RequestPlan, account: &Account) -> Result<(), Failure> {
        let RequestPlan { deployment, wanted, reach, begin, .. } = plan;
        let all = LogFilter::since(&deployment.log_group, self.read_from(*begin));
        let lines = LogFilter { pattern: Some(wanted.pattern()), ..all };
        let take = |page: Vec<LogEvent>| {
            for event in page {
                self.last = self.last.max(Some(event.at));
                let Ok(line) = LogLine::read(&event.message) else { continue };
                if line.event.as_ref().is_some_and(|about| wanted.takes(about)) {
                    self.take(line, &reach.retries);
                }
            }
        };
        lines.pages(account, take).await?;
        Ok(())
    }

    /// Returns the time from which to read the log next. Reads overlap, because lines may arrive out of order.
    fn read_from(&self, start: Timestamp) -> Timestamp {
        self.last.map_or(start, |last| last.before(LINES_ARRIVE).max(start))
    }

    fn take(&mut self, line: LogLine<'_>, awaited: &HashSet<(String, u64)>) {
        let Some(event) = line.event else { return };
        // This line is about the failure of the invocation `request_id`.
        self.failed.extend(event.request_id.map(Into::into));
        let retry = (event.key.into(), event.retry);
        if let What::Reinvoke { invoke_request_id, .. } = line.what.into_owned()
            && awaited.contains(&retry)
        {
            self.retried.insert(retry);
            self.invocations.extend(invoke_request_id);
        }
    }

    fn failed_again(&self) -> u64 {
        self.invocations.intersection(&self.failed).count() as u64
    }

    fn in_words(&self, awaited: usize) -> String {
        let again = match self.failed_again() {
            0 => String::new(),
            failed => format!(", {} failed again", grouped(failed)),
        };
        format!("{} of {} retried{again}", grouped(self.retried.len() as u64), grouped(awaited as u64))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::deployment::Deployment;
    use crate::log::test_line;
    use crate::request::tests::plan;

    #[test]
    fn only_awaited_retries_count_each_once() {
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
    fn end_of_a_request_names_the_events_it_left() {
        let retries = (0..2_001).map(|number| (format!("k-{number}"), 1)).collect();
        let deployment = Deployment { stack: Some("shop".into()), ..Deployment::sample() };
        let plan = RequestPlan { deployment, ..plan(Reach { retries, ..Reach::default() }) };
        let requested = Completed { plan, notes: Vec::new() };
        let left = |retried| requested.left_over(retried).map(|text| text.to_string());
        let rest = "no retry in the log; `comeback waiting --stack shop` shows what still waits";
        assert_eq!(left(2_001), None);
        assert_eq!(left(2_000), Some(format!("the request has ended, but 1 event has {rest}")));
        assert_eq!(left(1), Some(format!("the request has ended, but 2,000 events have {rest}")));
    }
}
