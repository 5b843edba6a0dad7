//! Recalls by operators: they read the handler's log, and shorten the time that waiting messages are hidden.

use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use comeback_engine::{BatchReport, LogFold, LogLine, Pauses, Policies, Rules, Timestamp};

use super::{Happening, World};
use crate::aws::queue::ReceiptHandle;
use crate::operators::PlannedRecall;

/// The recalls planned for a run, and the handler's log that they read.
#[derive(Debug)]
pub(super) struct Recalls {
    planned: Vec<PlannedRecall>,
    /// Log lines that no operator has read yet, the oldest first.
    unread: VecDeque<LogLine<'static>>,
    log: LogFold<BuildHasherDefault<DefaultHasher>>,
}

impl Recalls {
    pub(super) fn new(planned: Vec<PlannedRecall>) -> Self {
        Self { planned, unread: VecDeque::new(), log: LogFold::default().keeping_handles() }
    }

    /// Returns the moment of each recall, with its happening.
    pub(super) fn moments(&self) -> impl Iterator<Item = (Timestamp, Happening)> {
        self.planned.iter().enumerate().map(|(index, planned)| (planned.moment, Happening::Recall(index)))
    }

    /// Keeps the handler's log lines about a batch, if the run has recalls.
    pub(super) fn written(&mut self, report: &BatchReport<'_>, now: Timestamp) {
        if self.planned.is_empty() {
            return;
        }
        for line in report.log_lines(now) {
            let text = serde_json::to_string(&line).expect("BUG: a log line is not JSON");
            self.unread.push_back(LogLine::read(&text).expect("BUG: a log line cannot be read back"));
        }
    }

    /// Returns the receipt handles that an operator uses now, each with the due time of its message's retry.
    fn choose(
        &mut self,
        index: usize,
        policies: &Policies,
        pauses: &Pauses,
        now: Timestamp,
    ) -> Vec<(ReceiptHandle, Timestamp)> {
        let PlannedRecall { written, recall, .. } = &self.planned[index];
        let shown = now.before(recall.log_delay);
        while self.unread.front().is_some_and(|line| line.timestamp <= shown) {
            self.unread.pop_front().iter().for_each(|line| self.log.take(line));
        }
        let Some(entry) = written.find(pauses) else { return Vec::new() };
        let rules = Rules { policies, pauses };
        let kinds = self.log.kinds();
        let chosen = self.log.waiting().filter_map(|message| {
            let due = entry.due(message, &kinds[message.kind as usize], rules, now).ok()?;
            let handle = message.handle.as_ref().expect("BUG: recalled without a handle");
            Some((ReceiptHandle::parse(&handle.receipt_handle)?, due))
        });
        let mut chosen: Vec<_> = chosen.collect();
        // As the command does.
        chosen.sort_by_key(|(handle, due)| (*due, *handle));
        let most = if recall.is_killed { chosen.len() / 2 } else { chosen.len() };
        chosen.truncate(most);
        chosen
    }
}

impl World {
    /// An operator recalls the messages that one entry of the pauses parameter covers.
    pub(super) fn recall(&mut self, index: usize) {
        let now = self.now;
        let Some(pauses) = self.parameter.held(now) else { return };
        for (handle, due) in self.recalls.choose(index, self.environments.policies(now), pauses, now) {
            let Some((carried, hidden_until)) = self.queue.hidden(handle) else { continue };
            let (entry, event) = (carried.entry, carried.origin.attempt.event);
            let timeout = Duration::from_secs(due.since(now).as_millis().div_ceil(1_000) as u64);
            let handle = handle.to_string();
            let changed = self.queue.change_visibility(now, &mut self.agenda, &handle, timeout);
            if changed.is_ok() {
                self.oracle.recalled(entry, event, hidden_until, now.saturating_add(timeout), now);
            }
        }
    }
}
