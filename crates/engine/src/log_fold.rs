//! The state of each message according to the handler's log.

use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasher;
use std::time::Duration;

use crate::log_line::{LogLine, LoggedEvent};
use crate::outcome::{Cause, DueBy, What};
use crate::time::Timestamp;

/// Maximum number of message kinds with a group of their own. There is a limit because a function could make up any
/// number of error types.
const MOST_KINDS: usize = 1_000;

/// The states of all messages in a log. Its lines may come in any order, and more than once.
///
/// A message is settled if any of its lines says so, even an older one. Otherwise it is waiting, and its latest line
/// says for what.
///
/// If lines are missing from the log, a settled message may seem to be waiting, but not the reverse.
///
/// Each waiting message takes about 200 bytes of memory, and each settled message about 20 bytes.
///
/// The hasher `S` should be unpredictable, because it hashes untrusted strings.
#[derive(Clone, Debug, Default)]
pub struct LogFold<S> {
    hasher: S,
    /// The waiting messages, keyed by a hash of their event. This is not a `HashMap`, because a growing `HashMap`
    /// frees memory that is not returned to the system until the program ends.
    waiting: BTreeMap<u64, WaitingMessage>,
    settled: HashSet<u64, S>,
    kinds: Vec<MessageKind>,
    kind_of: BTreeMap<u64, u32>,
    keeps_handles: bool,
}

/// A message that is waiting in the retry queue, according to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The key of the message's event.
    pub key: Box<str>,
    /// Index of the message's function and error in [`LogFold::kinds`].
    pub kind: u32,
    /// The number of the event's next retry.
    pub retry: u64,
    /// When the event first failed.
    pub first_failure: Timestamp,
    /// The condition that ends the message's wait.
    pub waits_for: WaitsFor,
    /// When the handler wrote the newest log line about the message.
    pub at: Timestamp,
    /// The visibility timeout or delay that the handler set for the message, in seconds.
    delay: u32,
    /// The ids needed to make the message visible early; `None` if they are not logged or not kept.
    pub handle: Option<Box<Handle>>,
}

/// The two ids that an operator needs to make a hidden message visible again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// SQS's id for the message.
    pub message_id: Box<str>,
    /// The receipt handle from the message's last receive.
    pub receipt_handle: Box<str>,
}

/// The condition that ends a message's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitsFor {
    /// The message is waiting for its retry to become due.
    Due {
        /// When the retry is due.
        due: Timestamp,
        /// The rule or request that set the due time.
        by: DueBy,
    },
    /// The message is waiting for the end of its function's pause.
    Resume,
    /// The message is waiting for the handler's next attempt, because a call failed or the handler could not decide
    /// yet.
    NextTry {
        /// The reason for keeping the message.
        cause: Cause,
        /// When the handler checks the message again; `None` if the message could not be hidden.
        at: Option<Timestamp>,
    },
}

/// A group of messages with the same function and error. All combinations beyond the first 1,000 share one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageKind {
    /// The ARN of the function; `None` if the group combines several functions.
    pub target: Option<String>,
    /// The `errorType` of the failed invocation; `None` if it is unknown, or if the group combines several errors.
    pub error_type: Option<String>,
    /// If a `RetryAfter` was ignored, the start of its message and the reason for ignoring it.
    pub retry_after_ignored: Option<String>,
}

/// The state of one message, according to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState<'f> {
    /// The message is waiting in the retry queue.
    Waiting(&'f WaitingMessage),
    /// The event was re-invoked or dead-lettered.
    Settled,
}

impl<S: BuildHasher> LogFold<S> {
    /// Makes the fold keep receipt handles, which take another 500 bytes of memory for each waiting message.
    #[must_use]
    pub fn keeping_handles(self) -> Self {
        Self { keeps_handles: true, ..self }
    }

    /// Adds a line from the log.
    pub fn take(&mut self, line: &LogLine<'_>) {
        let Some(event) = &line.event else { return };
        let id = self.id(event);
        let Some((waits_for, delay)) = WaitsFor::of(line) else {
            self.waiting.remove(&id);
            self.settled.insert(id);
            return;
        };
        if self.settled.contains(&id) {
            return;
        }
        let says = (line.timestamp, waits_for, delay);
        if let Some(known) = self.waiting.get_mut(&id) {
            // If two lines have the same time, the result must not depend on their order.
            if (known.at, known.waits_for, known.delay) < says {
                (known.at, known.waits_for, known.delay) = says;
                known.handle = self.keeps_handles.then(|| Handle::of(line)).flatten();
            }
            return;
        }
        let LoggedEvent { key, retry, first_failure, retry_after_ignored, .. } = event;
        let kind = self.kind(event);
        // The shared group has several functions, and a `RetryAfter` is about only one of them.
        let of_one = self.kinds.get_mut(kind as usize).filter(|kind| kind.target.is_some());
        if let Some((ignored, known)) = retry_after_ignored.as_deref().zip(of_one)
            && known.retry_after_ignored.as_deref() < Some(ignored)
        {
            known.retry_after_ignored = Some(ignored.into());
        }
        let message = WaitingMessage {
            key: key.as_ref().into(),
            kind,
            retry: *retry,
            first_failure: *first_failure,
            waits_for,
            at: line.timestamp,
            delay,
            handle: self.keeps_handles.then(|| Handle::of(line)).flatten(),
        };
        self.waiting.insert(id, message);
    }

    /// Removes every waiting message whose newest log line was written before `since`.
    pub fn forget_before(&mut self, since: Timestamp) {
        self.waiting.retain(|_, message| message.at >= since);
    }

    /// The waiting messages, in no particular order.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &WaitingMessage> {
        self.waiting.values()
    }

    /// All groups of messages that are or were waiting, indexed by [`WaitingMessage::kind`].
    pub fn kinds(&self) -> &[MessageKind] {
        &self.kinds
    }

    /// The state of the message that carries this event; `None` if the log has no line about that message.
    pub fn state_of(&self, event: &LoggedEvent<'_>) -> Option<MessageState<'_>> {
        let id = self.id(event);
        let waiting = self.waiting.get(&id).map(MessageState::Waiting);
        waiting.or_else(|| self.settled.contains(&id).then_some(MessageState::Settled))
    }

    fn id(&self, event: &LoggedEvent<'_>) -> u64 {
        let LoggedEvent { key, target, retry, first_failure, request_id, .. } = event;
        self.hasher.hash_one((key, target, retry, first_failure, request_id))
    }

    fn kind(&mut self, event: &LoggedEvent<'_>) -> u32 {
        let id = self.hasher.hash_one((&event.target, &event.error_type));
        if let Some(kind) = self.kind_of.get(&id) {
            return *kind;
        }
        let next = self.kinds.len().min(MOST_KINDS);
        if next < MOST_KINDS {
            let error_type = event.error_type.as_deref().map(Into::into);
            let target = Some(event.target.as_ref().into());
            self.kinds.push(MessageKind { target, error_type, retry_after_ignored: None });
            self.kind_of.insert(id, next as u32);
        } else if self.kinds.len() == MOST_KINDS {
            self.kinds.push(MessageKind::default());
        }
        next as u32
    }
}

impl Handle {
    fn of(line: &LogLine<'_>) -> Option<Box<Self>> {
        let receipt_handle = line.receipt_handle.as_deref()?.into();
        Some(Box::new(Self { message_id: line.message_id.as_ref().into(), receipt_handle }))
    }
}

impl WaitingMessage {
    /// The time when the message's visibility timeout or delay ends.
    pub fn next_check(&self) -> Timestamp {
        self.at.saturating_add(Duration::from_secs(self.delay.into()))
    }
}

impl WaitsFor {
    /// The time when the wait ends, or `None` if the log does not show it.
    pub const fn end(self) -> Option<Timestamp> {
        match self {
            Self::Due { due, .. } => Some(due),
            Self::NextTry { at, .. } => at,
            Self::Resume => None,
        }
    }

    /// Returns what the message is waiting for and the line's delay in seconds; `None` if the message is settled.
    fn of(line: &LogLine<'_>) -> Option<(Self, u32)> {
        let hidden = |delay: u64| u32::try_from(delay).unwrap_or(u32::MAX);
        match *line.what {
            What::Defer { due, due_by, delay, .. } => Some((Self::Due { due, by: due_by }, hidden(delay))),
            What::Hold { delay, .. } => Some((Self::Resume, hidden(delay))),
            What::Keep { cause, delay, not_before, .. } => {
                let after = |delay| line.timestamp.saturating_add(Duration::from_secs(delay));
                let at = not_before.or_else(|| delay.map(after));
                Some((Self::NextTry { cause, at }, hidden(delay.unwrap_or_default())))
            }
            What::Reinvoke { .. } | What::DeadLetter { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
