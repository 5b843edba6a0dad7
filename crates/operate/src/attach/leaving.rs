use std::collections::HashSet;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::status::Depth;
use crate::trace::line::HandlerLine;

/// How long Lambda may keep an event of an attached function before it runs it, and some time for it to send the record.
const BEFORE_AND_AFTER: Duration = Duration::from_secs(60 + 60);

/// Whether the events of a function have left the retry queue.
///
/// A queue cannot be listed. What waits is told by the handler's log instead: every event of the function has a line
/// when it arrives, and one when it is settled. So nothing waits once invocations that were under way have ended, the
/// handler has looked at every message that is due, and the last line of each event says that it is settled. An empty
/// queue needs no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Now.
    pub now: Timestamp,
    /// What still waits may be given up.
    pub at_once: bool,
    /// The longest that an invocation of the function takes.
    pub timeout: Duration,
    /// What the retry queue holds, of any function.
    pub queue: Depth,
    /// Whether the handler takes messages from the retry queue.
    pub is_consumed: bool,
    /// What the handler's log says. Nobody needs to read it while something else says that events may still come.
    pub log: Option<Waiting>,
    /// The other functions that send failures to the retry queue by the same role.
    pub sharing: Vec<String>,
}

/// What a handler's log says of the events of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The keys of the events whose last line does not settle them.
    open: HashSet<String>,
    /// The latest time until which one was seen to wait.
    latest: Option<Timestamp>,
}

impl Leaving {
    /// When every invocation that was under way as the destination was taken away has ended.
    #[must_use]
    pub fn quiet_from(&self, detached: Timestamp) -> Timestamp {
        detached.saturating_add(self.timeout).saturating_add(BEFORE_AND_AFTER)
    }

    /// Whether only the log can tell that nothing waits.
    #[must_use]
    pub fn needs_log(&self, detached: Option<Timestamp>) -> bool {
        let is_quiet = detached.is_some_and(|detached| self.quiet_from(detached) <= self.now);
        is_quiet
            && !self.at_once
            && self.queue != Depth::default()
            && self.queue.visible == 0
            && self.is_consumed
    }

    /// Why the events may not have left yet; `None` if they have, or may be given up. `is_attached` says that failures go
    /// to the queue at this moment, `detached` since when they do not.
    pub(crate) fn wait(&self, is_attached: bool, detached: Option<Timestamp>) -> Option<String> {
        if self.at_once {
            return None;
        }
        let detached = detached.filter(|_| !is_attached).unwrap_or(self.now);
        let quiet = self.quiet_from(detached);
        if self.now < quiet {
            return Some(format!("invocations that are under way may still fail until {quiet}"));
        }
        if self.queue == Depth::default() {
            return None;
        }
        if !self.is_consumed {
            return Some("the handler takes nothing from the retry queue, and it is not empty".into());
        }
        if self.queue.visible > 0 {
            let due = self.queue.visible;
            return Some(format!(
                "the handler has not yet looked at about {due} messages of the retry queue"
            ));
        }
        self.log
            .as_ref()
            .map_or_else(|| Some("the handler's log was not read".into()), |log| log.wait(self.now))
    }
}

impl Waiting {
    /// Takes the next line of the handler's log, in order of time.
    pub(crate) fn see(&mut self, line: &HandlerLine) {
        let settles = matches!(&*line.action, "reinvoke" | "dead_letter") && line.problem.is_none();
        if settles {
            self.open.remove(&line.key);
        } else {
            self.open.insert(line.key.clone());
            // Several copies of an event share its key, and each waits for itself.
            self.latest = self.latest.max(line.due);
        }
    }

    fn wait(&self, now: Timestamp) -> Option<String> {
        let latest = self.latest.filter(|latest| now < *latest);
        match (self.open.len(), latest) {
            (0, None) => None,
            (0, Some(latest)) => Some(format!("a copy of an event waits until {latest}")),
            (count, Some(latest)) => Some(format!("{count} of its events wait, the last until {latest}")),
            (count, None) => Some(format!("{count} of its events wait, and all of them are due")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DETACHED: Timestamp = Timestamp::from_secs(1_700_000_000);
    const DUE: &str = "2023-11-15T00:00:00.000Z";

    /// Long after the destination was taken away, with three hidden messages and a log that has nothing of the function.
    fn hours_later() -> Leaving {
        Leaving {
            now: DETACHED.saturating_add(Duration::from_secs(7_200)),
            at_once: false,
            timeout: Duration::from_secs(900),
            queue: Depth { in_flight: 3, ..Depth::default() },
            is_consumed: true,
            log: Some(Waiting::default()),
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
                "the handler has not yet looked at about 2 messages of the retry queue",
            ),
            (Leaving { log: None, ..hours_later() }, "the handler's log was not read"),
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
    fn an_empty_queue_needs_no_log() {
        let empty = Leaving { queue: Depth::default(), is_consumed: false, log: None, ..hours_later() };
        assert_eq!(wait(&empty), None);
        assert!(!empty.needs_log(Some(DETACHED)) && hours_later().needs_log(Some(DETACHED)));
        assert!(!hours_later().needs_log(None), "it is too early");
    }

    #[test]
    fn an_event_waits_until_a_line_settles_it() {
        let line = |key: &str, action: &str, problem: Option<&str>| HandlerLine {
            key: key.into(),
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
        let (defer, settled) = (line("k", "defer", None), line("k", "reinvoke", None));
        assert_eq!(after(&[], after_due), None);
        assert_eq!(after(std::slice::from_ref(&defer), before_due), waits);
        assert_eq!(after(std::slice::from_ref(&defer), after_due), due);
        for end in [settled.clone(), line("k", "dead_letter", None)] {
            assert_eq!(after(&[defer.clone(), end], after_due), None);
        }
        for refused in
            [line("k", "reinvoke", Some("throttled")), line("k", "keep", None), line("k", "hold", None)]
        {
            assert_eq!(after(&[defer.clone(), refused], after_due), due);
        }
        assert_eq!(after(&[settled.clone(), defer.clone()], after_due), due, "it failed again");
        let copies = after(&[defer, settled], before_due);
        assert_eq!(copies, Some(format!("a copy of an event waits until {DUE}")));
    }
}
