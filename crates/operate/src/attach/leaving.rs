use std::collections::HashMap;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::status::Depth;
use crate::trace::line::HandlerLine;

/// How long Lambda may keep an event of an attached function before it runs it, and some time for it to send the record.
const BEFORE_AND_AFTER: Duration = Duration::from_secs(60 + 60);

/// SQS hides no message for longer, so that the handler sees each one as often, and writes a line.
const LONGEST_HIDDEN: Duration = Duration::from_secs(12 * 3_600);
/// The log levels that hide lines of level INFO.
const HIDING: [&str; 3] = ["WARN", "ERROR", "FATAL"];

/// Whether the events of a function have left the retry queue.
///
/// A queue cannot be listed. The handler's log says what waits: every event of the function has a line
/// when it arrives, and one when it is settled. So nothing waits once invocations that were under way have ended, the
/// handler has looked at every message that is due, and the last line of each event says that it is settled. That a queue
/// is empty is no more than an estimate, so that the log counts then too, if there is one.
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
    /// What the handler's log says.
    pub log: Log,
    /// The other functions that send failures to the retry queue by the same role.
    pub sharing: Vec<String>,
}

/// A handler's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// Nobody needs to read it while something else says that events may still come.
    #[default]
    Unread,
    /// There is none: the handler has never run, or somebody has deleted it.
    Missing,
    /// This log level hides the lines of events.
    Hidden(String),
    /// What it says.
    Read(Waiting),
}

/// What a handler's log says of the events of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// When the last line of each event was written, by its key, and whether the event still waits after it.
    last: HashMap<String, (Timestamp, bool)>,
    /// The latest time until which one was seen to wait.
    latest: Option<Timestamp>,
    /// The latest time until which an event without a key may wait.
    without_key: Option<Timestamp>,
}

impl Leaving {
    /// When every invocation that was under way as the destination was taken away has ended.
    #[must_use]
    pub fn quiet_from(&self, detached: Timestamp) -> Timestamp {
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
    #[must_use]
    pub fn needs_log(&self, detached: Option<Timestamp>) -> bool {
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
            return Some(format!(
                "the handler has not yet looked at about {due} messages of the retry queue"
            ));
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
    /// Why a log is not worth reading: its level hides what it would say.
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

#[cfg(test)]
mod tests;
