//! Checks that a function's events have left the retry queue. `detach` waits until they have.

use std::cell::Cell;
use std::hash::RandomState;
use std::time::Duration;

use comeback_engine::{LogFold, LogLine, NotALine, RETENTION, Timestamp};

use crate::account::Account;
use crate::attach::attachment::Attachment;
use crate::attach::kept;
use crate::aws::{LogEvent, LogFilter};
use crate::deployment::Deployment;
use crate::deployment::queue::Depth;
use crate::failure::Failure;
use crate::function::is_same_function;
use crate::log::HIDING_INFO;
use crate::numbers::counted;
use crate::operator::{Operator, Progress};

/// Lambda may take up to a minute to start an invocation, and up to a minute to send its failure to the queue.
const BEFORE_AND_AFTER: Duration = Duration::from_secs(60 + 60);

/// Evidence of whether all events of a function have left the retry queue.
///
/// No event is left once every invocation that could fail has ended, the handler has received every due message, and
/// every event in the handler's log is settled. An empty queue is not enough, because SQS only estimates its message
/// counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    pub(crate) now: Timestamp,
    /// True if the operator used `--now`, which tells `detach` not to wait for the function's last events.
    pub(crate) at_once: bool,
    /// The reason why events may still be in the retry queue; `None` if all have left or no check was needed.
    pub(crate) waiting: Option<String>,
    /// Other functions with the same role that send failures to the retry queue, or may still send their last
    /// failures.
    pub(crate) sharing: Vec<String>,
}

impl Leaving {
    pub(crate) async fn read(
        operator: &Operator,
        attachment: &Attachment,
        at_once: bool,
    ) -> Result<Self, Failure> {
        let now = operator.now();
        let mut leaving = Self { now, at_once, waiting: None, sharing: Vec::new() };
        if attachment.send_policy {
            leaving.sharing = sharing(&operator.account, attachment).await?;
        }
        // If another qualifier stays attached, `detach` need not wait.
        let is_last = attachment.other_qualifiers().next().is_none();
        let may_go = is_last && leaving.under_way_until(attachment).is_none();
        if !at_once && may_go {
            leaving.waiting = read_waiting(operator, attachment, now).await?;
        }
        Ok(leaving)
    }

    /// The latest time at which a running invocation can still send a failure; `None` if this time has passed.
    pub(crate) fn under_way_until(&self, attachment: &Attachment) -> Option<Timestamp> {
        let tags = &attachment.target.tags;
        let detached = kept::time(tags, attachment.mark()).filter(|_| !attachment.is_attached());
        let last = detached.unwrap_or(self.now).saturating_add(attachment.target.timeout);
        let end = last.saturating_add(BEFORE_AND_AFTER);
        (self.now < end).then_some(end)
    }

    /// The reason why `detach` must wait; `None` if the events have left the queue or the operator used `--now`.
    pub(crate) fn wait(&self, attachment: &Attachment) -> Option<String> {
        if self.at_once {
            return None;
        }
        match self.under_way_until(attachment) {
            Some(end) => Some(format!(
                "running invocations may still fail until {end}, and events that wait then may take longer"
            )),
            None => self.waiting.clone(),
        }
    }
}

async fn read_waiting(
    operator: &Operator,
    attachment: &Attachment,
    now: Timestamp,
) -> Result<Option<String>, Failure> {
    let (deployment, arn) = (&attachment.deployment, &attachment.target.arn);
    let queue = Depth::read(&operator.account, &deployment.retry_queue).await?;
    if let Some(why) = unseen(queue, deployment) {
        return Ok(Some(why));
    }
    let lines = LogFilter::since(&deployment.log_group, now.before(RETENTION)).containing(arn)?;
    let mut log = LoggedMessages::default();
    let read = Cell::new(0);
    let progress = |done: u64, of: Option<u64>| {
        read.set(done);
        operator.follow.progress(Progress { done, of, unit: "lines of the handler's log" });
    };
    progress(0, None);
    let see = |page: Vec<LogEvent>| {
        for event in page.into_iter().filter(|event| event.message.contains(arn)) {
            progress(read.get() + 1, None);
            match LogLine::read(&event.message) {
                Ok(line) if line.event.as_ref().is_some_and(|event| is_same_function(&event.target, arn)) => {
                    log.messages.take(&line);
                }
                Err(NotALine::Newer) => log.is_newer = true,
                Ok(_) | Err(NotALine::Other) => {}
            }
        }
    };
    let is_there = lines.pages(&operator.account, see).await?;
    progress(read.get(), Some(read.get()));
    Ok(wait(queue, is_there.then_some(&log), now))
}

/// The reason why the log might not show every waiting event; `None` if it shows them all.
fn unseen(queue: Depth, deployment: &Deployment) -> Option<String> {
    if queue != Depth::default() && deployment.stopped().is_some() {
        return Some("the retry queue is not empty, but the handler receives nothing from it".into());
    }
    if queue.visible > 0 {
        let due = queue.visible;
        return Some(format!("about {due} messages are due, and the handler has not received them yet"));
    }
    let level = deployment.log_level.as_deref().filter(|level| HIDING_INFO.contains(level))?;
    Some(format!("the handler's log level is {level}, which hides waiting events (set it to INFO)"))
}

/// Returns the reason why `detach` must wait, if any; `log` is `None` if the handler has never run.
fn wait(queue: Depth, log: Option<&LoggedMessages>, now: Timestamp) -> Option<String> {
    match log {
        Some(log) => log.wait(now),
        None if queue == Depth::default() => None,
        None => Some("the retry queue is not empty, but the handler has no log".into()),
    }
}

/// The states of one function's messages, according to the handler's log.
#[derive(Debug, Default)]
struct LoggedMessages {
    messages: LogFold<RandomState>,
    /// True if a newer version of Comeback wrote some of the log's lines.
    is_newer: bool,
}

impl LoggedMessages {
    fn wait(&self, now: Timestamp) -> Option<String> {
        if self.is_newer {
            return Some(
                "a newer handler wrote log lines that this command cannot read (update the command)".into(),
            );
        }
        let until = self.messages.waiting().filter_map(|message| message.waits_for.end());
        let latest = until.max().filter(|latest| now < *latest);
        match (self.messages.waiting().len(), latest) {
            (0, _) => None,
            (count, Some(latest)) => {
                Some(format!("{} waiting, the last until {latest}", of_its_events(count)))
            }
            (count, None) => Some(format!("{} waiting, all due", of_its_events(count))),
        }
    }
}

fn of_its_events(count: usize) -> String {
    counted(count as u64, "of its events is", "of its events are")
}

async fn sharing(account: &Account, attachment: &Attachment) -> Result<Vec<String>, Failure> {
    let (target, queue) = (&attachment.target, Some(attachment.deployment.retry_queue.arn.as_str()));
    let mut sharing = Vec::new();
    for function in account.aws.functions("this region").await? {
        if function.role_arn != target.role_arn || function.name == target.name {
            continue;
        }
        let settings = account.aws.invoke_settings(&function.name).await?;
        let sends = settings.values().any(|it| it.on_failure.as_deref() == queue);
        if sends || is_leaving(account, &function.arn).await? {
            sharing.push(function.name);
        }
    }
    Ok(sharing)
}

/// Returns true if a function is still being detached or moved to another deployment.
async fn is_leaving(account: &Account, arn: &str) -> Result<bool, Failure> {
    let tags = account.aws.tags(arn).await?;
    Ok([kept::DETACHED, kept::MOVED].iter().any(|key| tags.contains_key(*key)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::attach::tests::attachment;
    use crate::aws::{InvokeSettings, Mapping};
    use crate::function::Target;
    use crate::log::test_line;

    use super::*;

    const DETACHED: Timestamp = Timestamp::from_secs(1_700_000_000);
    const DUE: &str = "2023-11-15T00:00:00.000Z";

    const HIDDEN: Depth = Depth { visible: 0, in_flight: 3, delayed: 0 };
    const EMPTY: Depth = Depth { in_flight: 0, ..HIDDEN };

    fn running() -> Deployment {
        Deployment { mapping: Some(Mapping::sample()), ..Deployment::sample() }
    }

    fn logging(level: &str) -> Deployment {
        Deployment { log_level: Some(level.into()), ..running() }
    }

    #[test]
    fn messages_of_others_do_not_matter() {
        assert_eq!(unseen(HIDDEN, &running()), None);
        assert_eq!(wait(HIDDEN, Some(&LoggedMessages::default()), DETACHED), None);
    }

    #[test]
    fn each_sign_of_a_waiting_event_is_named() {
        let visible = Depth { visible: 2, ..EMPTY };
        let stopped = "the retry queue is not empty, but the handler receives nothing from it";
        for (found, said) in [
            (unseen(HIDDEN, &Deployment::sample()), stopped),
            (unseen(HIDDEN, &Deployment { never_runs: true, ..running() }), stopped),
            (
                unseen(visible, &running()),
                "about 2 messages are due, and the handler has not received them yet",
            ),
            (
                unseen(EMPTY, &logging("WARN")),
                "the handler's log level is WARN, which hides waiting events (set it to INFO)",
            ),
            (wait(HIDDEN, None, DETACHED), "the retry queue is not empty, but the handler has no log"),
        ] {
            assert_eq!(found.as_deref(), Some(said));
        }
    }

    #[tokio::test]
    async fn invocations_end_two_minutes_after_the_longest_timeout() {
        let timeout = Duration::from_secs(900);
        let tags = [(kept::DETACHED.to_owned(), DETACHED.to_string())].into();
        let mut attachment = attachment().await;
        attachment.target = Target { timeout, tags, ..attachment.target };
        let at = |seconds: u64| {
            let now = DETACHED.saturating_add(Duration::from_secs(seconds));
            Leaving { now, at_once: false, waiting: None, sharing: Vec::new() }
        };
        let said = "running invocations may still fail until 2023-11-14T22:30:20.000Z, and events that wait \
                    then may take longer";
        assert_eq!(at(1_019).wait(&attachment).as_deref(), Some(said));
        assert_eq!(at(1_020).wait(&attachment), None);
        assert_eq!(Leaving { at_once: true, ..at(1_019) }.wait(&attachment), None);
        attachment.target.tags.clear();
        assert!(at(7_200).wait(&attachment).is_some(), "nobody knows since when");
        attachment.target.tags.insert(kept::DETACHED.into(), DETACHED.to_string());
        let on_failure = Some(attachment.deployment.retry_queue.arn.clone());
        let settings = InvokeSettings { on_failure, ..InvokeSettings::default() };
        attachment.target.invoke_settings.insert(None, settings);
        assert!(at(7_200).wait(&attachment).is_some(), "an old mark does not count");
    }

    #[test]
    fn empty_queue_is_believed_only_with_the_log() {
        for deployment in [running(), Deployment::sample()] {
            assert_eq!(unseen(EMPTY, &deployment), None);
        }
        let mut waiting = LoggedMessages::default();
        waiting.messages.take(&test_line(json!({"action": "hold", "due": DETACHED, "delay": 60})));
        let said = wait(EMPTY, Some(&waiting), DETACHED);
        assert!(said.is_some_and(|said| said.starts_with("1 of its events")));
        assert_eq!(wait(EMPTY, Some(&LoggedMessages::default()), DETACHED), None);
        assert_eq!(wait(EMPTY, None, DETACHED), None, "the handler has never run");
    }

    #[test]
    fn a_level_above_info_hides_the_events() {
        for level in ["INFO", "DEBUG", "TRACE"] {
            assert_eq!(unseen(EMPTY, &logging(level)), None);
        }
        for level in HIDING_INFO {
            assert!(unseen(EMPTY, &logging(level)).is_some());
        }
    }

    #[test]
    fn an_event_waits_until_a_line_settles_it() {
        let line = |at: u64, mut fields: Value| {
            fields["timestamp"] = json!(DETACHED.saturating_add(Duration::from_secs(at)));
            test_line(fields)
        };
        let after = |lines: &[LogLine<'static>], now: Timestamp| {
            let mut log = LoggedMessages::default();
            lines.iter().for_each(|line| log.messages.take(line));
            log.wait(now)
        };
        let (before_due, after_due) = (DETACHED, DETACHED.saturating_add(Duration::from_secs(86_400)));
        let waits = Some(format!("1 of its events is waiting, the last until {DUE}"));
        let due = Some("1 of its events is waiting, all due".to_owned());
        let defer = line(1, json!({"action": "defer", "due": DUE, "due_by": "policy", "delay": 60}));
        let settled = line(2, json!({"action": "reinvoke", "due": DUE}));
        assert_eq!(after(&[], after_due), None);
        assert_eq!(after(std::slice::from_ref(&defer), before_due), waits);
        assert_eq!(after(std::slice::from_ref(&defer), after_due), due);
        let dead_lettered =
            line(2, json!({"action": "dead_letter", "reason": "max_age", "detail": "too old"}));
        for end in [settled.clone(), dead_lettered] {
            assert_eq!(after(&[defer.clone(), end.clone()], after_due), None);
            assert_eq!(after(&[end, defer.clone()], after_due), None, "whatever comes first");
        }
        for kept in
            [json!({"action": "keep", "cause": "refused"}), json!({"action": "hold", "due": DUE, "delay": 9})]
        {
            assert_eq!(after(&[defer.clone(), line(2, kept)], after_due), due);
        }
        // The event, or a copy of it, fails again after it was settled.
        let again =
            json!({"action": "defer", "due": DUE, "due_by": "policy", "delay": 60, "request_id": "r-1"});
        assert_eq!(after(&[defer, settled, line(3, again)], before_due), waits);
    }

    #[test]
    fn unreadable_log_keeps_everything() {
        let waiting = LoggedMessages { is_newer: true, ..LoggedMessages::default() };
        assert!(waiting.wait(DETACHED).unwrap().contains("update the command"));
    }
}
