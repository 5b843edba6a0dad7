//! Whether a function's events have left the retry queue.

use std::collections::HashMap;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::kept;
use crate::operate::deployment::{Deployment, Depth};
use crate::operate::function::InvokeSettings;
use crate::operate::log::{HandlerLine, LogEvent, Search};

/// How long Lambda may keep an event of an attached function before running it, and some time to send the record.
const BEFORE_AND_AFTER: Duration = Duration::from_secs(60 + 60);

/// SQS hides a message no longer than this, so the handler receives each one within it, and writes a line.
const LONGEST_HIDDEN: Duration = Duration::from_secs(12 * 3_600);
/// How long an event may wait, in milliseconds: SQS's longest retention.
const RETENTION_MILLIS: u64 = 14 * 86_400_000;
/// The log levels that hide lines of level INFO.
const HIDING: [&str; 3] = ["WARN", "ERROR", "FATAL"];

/// Whether the events of a function have left the retry queue.
///
/// A queue cannot be listed. The handler's log says what waits: every event of the function has a line
/// when it arrives, and one when it is settled. So nothing waits once invocations that were under way have ended, the
/// handler has looked at every message that is due, and the last line of each event says that it is settled. SQS only
/// estimates that a queue is empty, so the log counts even then, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    pub(crate) now: Timestamp,
    pub(crate) at_once: bool,
    /// The longest that an invocation of the function takes.
    pub(crate) timeout: Duration,
    pub(crate) queue: Depth,
    /// Whether the handler takes messages from the retry queue.
    pub(crate) is_consumed: bool,
    pub(crate) log: Log,
    /// The other functions that send failures to the retry queue by the same role.
    pub(crate) sharing: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Log {
    /// Not needed while something else says that events may still come.
    #[default]
    Unread,
    /// The handler has never run, or somebody has deleted its log.
    Missing,
    Hidden(String),
    Read(Waiting),
}

/// What a handler's log says of the events of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// When the last line of each event was written, by its key, and whether the event still waits after it.
    last: HashMap<String, (Timestamp, bool)>,
    /// The latest time until which one was seen to wait.
    latest: Option<Timestamp>,
    /// The latest time until which an event without a key may wait.
    without_key: Option<Timestamp>,
}

impl Leaving {
    /// Reads whether the events of a function have left the retry queue, as far as it matters. `progress` hears how many
    /// lines of the log were read.
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        attachment: &Attachment,
        at_once: bool,
        now: Timestamp,
        progress: &dyn Fn(usize),
    ) -> Result<Self, Failure> {
        let target = &attachment.target;
        let sharing = match attachment.send_policy {
            true => sharing(account, attachment).await?,
            false => Vec::new(),
        };
        let leaving = Self {
            now,
            at_once,
            timeout: target.timeout,
            queue: Depth::read(account, &deployment.retry_queue).await?,
            is_consumed: deployment.mapping.as_ref().is_some_and(|mapping| mapping.state == "Enabled"),
            log: Log::Unread,
            sharing,
        };
        if !leaving.needs_log(kept::detached(&target.tags)) {
            return Ok(leaving);
        }
        if let Some(log) = Log::hidden(deployment.log_level.as_deref()) {
            return Ok(Self { log, ..leaving });
        }
        let since = Timestamp::from_millis(now.as_millis().saturating_sub(RETENTION_MILLIS));
        let (group, term) = (&*deployment.log_group, &*target.arn);
        let search = Search { group, term, since, until: None, stream: None };
        let mut log = Waiting::default();
        let of_target = |line: &HandlerLine| {
            line.target
                .strip_prefix(&*target.arn)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        let see = |event: LogEvent| {
            if let Some(line) = HandlerLine::read_any(&event.message).filter(of_target) {
                log.see(&line);
            }
        };
        let is_there = search.each(account, progress, see).await?;
        Ok(Self { log: if is_there { Log::Read(log) } else { Log::Missing }, ..leaving })
    }

    /// When every invocation that was running when the destination was removed has ended.
    pub(crate) fn quiet_from(&self, detached: Timestamp) -> Timestamp {
        detached.saturating_add(self.timeout).saturating_add(BEFORE_AND_AFTER)
    }

    /// The end of the invocations that may still be under way; `None` if all of them have ended.
    pub(crate) fn under_way_until(
        &self,
        is_attached: bool,
        detached: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let quiet = self.quiet_from(detached.filter(|_| !is_attached).unwrap_or(self.now));
        (self.now < quiet).then_some(quiet)
    }

    /// Whether only the log can tell that nothing waits.
    pub(crate) fn needs_log(&self, detached: Option<Timestamp>) -> bool {
        let is_quiet = detached.is_some_and(|detached| self.quiet_from(detached) <= self.now);
        let is_stuck = self.queue != Depth::default() && (self.queue.visible > 0 || !self.is_consumed);
        is_quiet && !self.at_once && !is_stuck
    }

    /// Why the events may not have left yet; `None` if they have, or may be given up. `is_attached` says that failures go
    /// to the queue at this moment, `detached` since when they do not.
    pub(crate) fn wait(&self, is_attached: bool, detached: Option<Timestamp>) -> Option<String> {
        if self.at_once {
            return None;
        }
        if let Some(quiet) = self.under_way_until(is_attached, detached) {
            return Some(format!("invocations that are under way may still fail until {quiet}"));
        }
        let is_empty = self.queue == Depth::default();
        if !is_empty && !self.is_consumed {
            return Some("the handler takes nothing from the retry queue, and it is not empty".into());
        }
        if self.queue.visible > 0 {
            let due = self.queue.visible;
            return Some(format!("the handler has not yet received about {due} messages of the retry queue"));
        }
        match &self.log {
            Log::Read(log) => log.wait(self.now),
            Log::Missing if is_empty => None,
            Log::Missing => Some("the retry queue is not empty, and the handler has no log".into()),
            Log::Hidden(level) => {
                Some(format!("the handler's log level is {level}, which hides what waits (set it to INFO)"))
            }
            Log::Unread => Some("the handler's log was not read".into()),
        }
    }
}

impl Log {
    /// The log, if its level hides the lines of events.
    pub(crate) fn hidden(level: Option<&str>) -> Option<Self> {
        level.filter(|level| HIDING.contains(level)).map(|level| Self::Hidden(level.to_owned()))
    }
}

impl Waiting {
    /// Takes a line of the handler's log. They come in any order, because several of its instances write at once.
    pub(crate) fn see(&mut self, line: &HandlerLine) {
        let settles = matches!(&*line.action, "reinvoke" | "dead_letter") && line.problem.is_none();
        if !settles {
            // Several copies of an event share its key, and each waits for itself.
            self.latest = self.latest.max(line.due);
        }
        if line.key.is_empty() {
            if matches!(&*line.action, "defer" | "keep" | "hold") {
                self.without_key = self.without_key.max(Some(line.at().saturating_add(LONGEST_HIDDEN)));
            }
            return;
        }
        // Of two lines of one time, the one that does not settle the event counts.
        let seen = (line.at(), !settles);
        self.last.entry(line.key.clone()).and_modify(|last| *last = seen.max(*last)).or_insert(seen);
    }

    fn wait(&self, now: Timestamp) -> Option<String> {
        if let Some(until) = self.without_key.filter(|until| now < *until) {
            return Some(format!("lines of its events without a key say that some may wait until {until}"));
        }
        let latest = self.latest.filter(|latest| now < *latest);
        match (self.last.values().filter(|(_, waits)| *waits).count(), latest) {
            (0, None) => None,
            (0, Some(latest)) => Some(format!("a copy of an event waits until {latest}")),
            (count, Some(latest)) => Some(format!("{count} of its events wait, the last until {latest}")),
            (count, None) => Some(format!("{count} of its events wait, and all of them are due")),
        }
    }
}

/// The other functions that fail to the retry queue by the same role.
async fn sharing(account: &Account, attachment: &Attachment) -> Result<Vec<String>, Failure> {
    let target = &attachment.target;
    let mut pages = account.lambda.list_functions().into_paginator().items().send();
    let mut sharing = Vec::new();
    while let Some(function) = pages.next().await {
        let function = function.or_failure("lambda:ListFunctions", "this region")?;
        let name = function.function_name().unwrap_or_default();
        if function.role() != Some(&target.role_arn) || name == target.name {
            continue;
        }
        let settings = InvokeSettings::all(account, name).await?;
        if settings.values().any(|it| it.on_failure.as_deref() == Some(&attachment.queue.arn)) {
            sharing.push(name.to_owned());
        }
    }
    Ok(sharing)
}

#[cfg(test)]
mod tests {

    use super::*;

    const DETACHED: Timestamp = Timestamp::from_secs(1_700_000_000);
    const DUE: &str = "2023-11-15T00:00:00.000Z";

    /// Long after the destination was removed, with three hidden messages and a log without lines of the function.
    fn hours_later() -> Leaving {
        Leaving {
            now: DETACHED.saturating_add(Duration::from_secs(7_200)),
            at_once: false,
            timeout: Duration::from_secs(900),
            queue: Depth { in_flight: 3, ..Depth::default() },
            is_consumed: true,
            log: Log::Read(Waiting::default()),
            sharing: Vec::new(),
        }
    }

    fn wait(leaving: &Leaving) -> Option<String> {
        leaving.wait(false, Some(DETACHED))
    }

    #[test]
    fn messages_of_others_keep_nothing() {
        assert_eq!(wait(&hours_later()), None);
    }

    #[test]
    fn each_sign_of_a_waiting_event_is_said() {
        let early = DETACHED.saturating_add(Duration::from_secs(1_019));
        let cases = [
            (
                Leaving { now: early, ..hours_later() },
                "invocations that are under way may still fail until 2023-11-14T22:30:20.000Z",
            ),
            (
                Leaving { is_consumed: false, ..hours_later() },
                "the handler takes nothing from the retry queue, and it is not empty",
            ),
            (
                Leaving { queue: Depth { visible: 2, ..Depth::default() }, ..hours_later() },
                "the handler has not yet received about 2 messages of the retry queue",
            ),
            (Leaving { log: Log::Unread, ..hours_later() }, "the handler's log was not read"),
            (
                Leaving { log: Log::Missing, ..hours_later() },
                "the retry queue is not empty, and the handler has no log",
            ),
            (
                Leaving { log: Log::hidden(Some("WARN")).unwrap(), ..hours_later() },
                "the handler's log level is WARN, which hides what waits (set it to INFO)",
            ),
        ];
        for (leaving, said) in cases {
            assert_eq!(wait(&leaving).as_deref(), Some(said));
            assert_eq!(wait(&Leaving { at_once: true, ..leaving }), None);
        }
        let attached = hours_later().wait(true, Some(DETACHED));
        assert!(attached.is_some_and(|said| said.contains("under way")), "an old mark does not count");
        assert!(hours_later().wait(false, None).is_some(), "nobody knows since when");
    }

    #[test]
    fn a_queue_that_seems_empty_is_believed_only_with_the_log() {
        let empty = Leaving { queue: Depth::default(), is_consumed: false, ..hours_later() };
        let with = |log: Log| wait(&Leaving { log, ..empty.clone() });
        assert!(empty.needs_log(Some(DETACHED)) && hours_later().needs_log(Some(DETACHED)));
        assert!(!hours_later().needs_log(None), "it is too early");
        let mut waiting = Waiting::default();
        waiting.see(&HandlerLine { key: "k".into(), timestamp: Some(DETACHED), ..HandlerLine::default() });
        assert!(with(Log::Read(waiting)).is_some_and(|said| said.starts_with("1 of its events")));
        assert_eq!(with(Log::Read(Waiting::default())), None);
        assert_eq!(with(Log::Missing), None, "the handler has never run");
        assert!(with(Log::Unread).is_some() && with(Log::Hidden("ERROR".into())).is_some());
    }

    #[test]
    fn a_level_above_info_hides_the_events() {
        for level in [None, Some("INFO"), Some("DEBUG"), Some("TRACE")] {
            assert_eq!(Log::hidden(level), None);
        }
        for level in HIDING {
            assert_eq!(Log::hidden(Some(level)), Some(Log::Hidden(level.into())));
        }
    }

    #[test]
    fn a_line_without_a_key_counts_for_twelve_hours() {
        for (action, waits) in
            [("defer", true), ("keep", true), ("hold", true), ("reinvoke", false), ("dead_letter", false)]
        {
            let mut log = Waiting::default();
            let line =
                HandlerLine { timestamp: Some(DETACHED), action: action.into(), ..HandlerLine::default() };
            log.see(&line);
            let end = DETACHED.saturating_add(Duration::from_secs(43_200));
            let just_before = Timestamp::from_millis(end.as_millis() - 1);
            let said = log.wait(just_before);
            assert_eq!(
                said.is_some_and(|said| said.ends_with(&format!("may wait until {end}"))),
                waits,
                "{action}"
            );
            assert_eq!(log.wait(end), None);
        }
    }

    #[test]
    fn an_event_waits_until_a_line_settles_it() {
        let line = |at: u64, action: &str, problem: Option<&str>| HandlerLine {
            key: "k".into(),
            timestamp: Some(DETACHED.saturating_add(Duration::from_secs(at))),
            action: action.into(),
            due: Timestamp::from_rfc3339(DUE).filter(|_| action == "defer"),
            problem: problem.map(ToOwned::to_owned),
            ..HandlerLine::default()
        };
        let after = |lines: &[HandlerLine], now: Timestamp| {
            let mut log = Waiting::default();
            lines.iter().for_each(|line| log.see(line));
            log.wait(now)
        };
        let (before_due, after_due) = (DETACHED, DETACHED.saturating_add(Duration::from_secs(86_400)));
        let waits = Some(format!("1 of its events wait, the last until {DUE}"));
        let due = Some("1 of its events wait, and all of them are due".to_owned());
        let (defer, settled) = (line(1, "defer", None), line(2, "reinvoke", None));
        assert_eq!(after(&[], after_due), None);
        assert_eq!(after(std::slice::from_ref(&defer), before_due), waits);
        assert_eq!(after(std::slice::from_ref(&defer), after_due), due);
        for end in [settled.clone(), line(2, "dead_letter", None)] {
            assert_eq!(after(&[defer.clone(), end.clone()], after_due), None);
            assert_eq!(after(&[end, defer.clone()], after_due), None, "whatever comes first");
        }
        for refused in [line(2, "reinvoke", Some("throttled")), line(2, "keep", None), line(2, "hold", None)]
        {
            assert_eq!(after(&[defer.clone(), refused], after_due), due);
        }
        let again = line(3, "defer", None);
        assert_eq!(after(&[again, defer.clone(), settled.clone()], after_due), due, "it failed again");
        let copies = after(&[defer, settled], before_due);
        assert_eq!(copies, Some(format!("a copy of an event waits until {DUE}")));
    }
}
