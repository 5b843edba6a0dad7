//! The outcome of a batch, message by message. The handler's response and its log lines are made from it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::CallFailure;
use crate::batch_event::{BatchEvent, MissingMessageId};
use crate::dead_letter::Reason;
use crate::due::{DueBy, Early};
use crate::failed_event::FailedEvent;
use crate::pauses::Pause;
use crate::record::Record;
use crate::time::Timestamp;

/// Maximum time a message may be hidden without having to be recallable: it returns soon anyway.
pub(crate) const NOT_RECALLED: Duration = Duration::from_secs(120);

/// The outcome of a batch, one [`Outcome`] for each message.
#[derive(Clone, Debug)]
pub struct BatchReport<'a> {
    /// The batch that was handled.
    pub batch: &'a BatchEvent,
    /// The reason for keeping the whole batch untouched; `None` if it was handled.
    pub kept_whole: Option<MissingMessageId>,
    /// The outcomes, in the order of the batch. If a message was delivered twice in it, only the later delivery has
    /// one.
    pub outcomes: Vec<Outcome<'a>>,
    /// The numbers of messages that were moved (sent again with a delay) and that could not be moved.
    pub moves: Moves,
    /// The failure to hide messages before they were re-invoked; `None` if it succeeded. If this handler crashes, the
    /// calls are repeated after the queue's own visibility timeout.
    pub unguarded: Option<CallFailure>,
    /// The failure to count the messages in flight; `None` if no count failed. Until the next count, no more messages
    /// can be hidden.
    pub count_failure: Option<CallFailure>,
    /// The result of reading the pauses; `None` if this batch did not read them.
    pub pauses: Option<PausesRead>,
}

/// The result of reading the pauses from SSM.
#[derive(Clone, Debug, PartialEq)]
pub enum PausesRead {
    /// The handler read the pauses.
    Known {
        /// Pauses that have been open for over 24 hours, and may have been forgotten.
        long: Vec<Pause>,
        /// The mistakes in unreadable entries of `retries` and `cancels`, which are ignored.
        unreadable_requests: Vec<String>,
    },
    /// The read failed. The pauses that were read before still apply.
    AsBefore(CallFailure),
    /// The read failed, like every read before it in this environment. Any function may be paused, so none is invoked,
    /// and no event is dead-lettered for its age.
    Unknown(CallFailure),
}

/// The numbers of messages that a batch moved (sent again with a delay) and could not move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// The number of messages that were sent again.
    pub made: usize,
    /// The number of messages that could not be sent again and were hidden instead.
    pub failed: usize,
    /// The first failure to send a message again; `None` if there was none.
    pub problem: Option<CallFailure>,
}

impl<'a> BatchReport<'a> {
    /// Creates the report of a batch that has not been handled yet. If a message has no id, the report keeps the whole
    /// batch.
    pub fn new(batch: &'a BatchEvent) -> Self {
        Self {
            batch,
            kept_whole: batch.check_ids().err(),
            outcomes: Vec::new(),
            moves: Moves::default(),
            unguarded: None,
            count_failure: None,
            pauses: None,
        }
    }

    /// The message ids for `batchItemFailures`: every message that SQS must keep. An empty id makes Lambda keep the
    /// whole batch.
    pub fn batch_item_failures(&self) -> impl Iterator<Item = &'a str> {
        let untouched = if self.kept_whole.is_some() { self.batch.records.as_slice() } else { &[] };
        let untouched = untouched.iter().map(|record| record.message_id.as_str());
        let unsettled = self.outcomes.iter().filter(|outcome| !outcome.settled());
        let incomplete = self.batch.incomplete.iter().map(|message| message.message_id.as_str());
        untouched.chain(unsettled.map(|outcome| outcome.record.message_id.as_str())).chain(incomplete)
    }
}

/// The outcome of a message in a batch, with everything that its log line needs.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The message as received.
    pub record: &'a Record,
    /// The event in the message; `None` if the message could not be parsed or needed no decision.
    pub event: Option<FailedEvent<'a>>,
    /// The pattern of the entry of `POLICIES` that applies to the event's function. `None` if the stack's policy does.
    pub policy: Option<String>,
    /// Where the message is when the batch ends.
    pub end: End,
}

/// Where a message is when its batch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The message is on the retry queue, hidden.
    Hidden {
        /// The reason for the message's wait.
        why: Why,
        /// The visibility timeout that was set.
        timeout: Duration,
        /// True if the message is hidden because a call may have been accepted: until the hiding ends, no copy of the
        /// event may be made.
        is_guard: bool,
        /// The failure to hide the message; `None` if it is hidden. The message comes back after the queue's own
        /// visibility timeout, or at the end of an earlier guard.
        failure: Option<CallFailure>,
    },
    /// The message was replaced on the retry queue by a copy with a delay.
    Moved {
        /// The reason for the message's wait.
        why: Why,
        /// The `DelaySeconds` of the copy.
        delay: Duration,
        /// When the handler may decide on the copy, perhaps after several moves; `None` if the copy waits only for its
        /// backoff.
        not_before: Option<Timestamp>,
    },
    /// The message is settled: its target was re-invoked.
    Reinvoked {
        /// When the retry was due.
        due: Timestamp,
        /// The retry request that moved the due time forward; `None` if none did.
        early: Option<Early>,
        /// The request id of the new invocation; `None` if Lambda's answer had none.
        request_id: Option<String>,
    },
    /// The message is settled: it is on the dead-letter queue.
    DeadLettered {
        /// When the retry was due, if the target refused it; otherwise `None`.
        due: Option<Timestamp>,
        /// The reason to dead-letter the event.
        reason: Reason,
    },
}

/// The reason for leaving a message on the retry queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The retry is not due yet.
    Deferred {
        /// When the retry is due.
        due: Timestamp,
        /// The rule or request that set the due time.
        due_by: DueBy,
        /// The retry request that moved the due time forward; `None` if none did.
        early: Option<Early>,
    },
    /// The event's function is paused.
    Held {
        /// When the retry was due.
        due: Timestamp,
    },
    /// No decision was made: no function may be re-invoked yet, an earlier wait is not over, or the function may be
    /// paused.
    Kept(Cause),
    /// The re-invocation failed.
    NotInvoked {
        /// The kind of failure of the re-invocation.
        cause: Cause,
        /// When the retry was due.
        due: Timestamp,
        /// The failed call to Lambda.
        failure: CallFailure,
    },
    /// The event's dead-letter could not be sent.
    NotDeadLettered {
        /// When the retry was due, if the target refused it; otherwise `None`.
        due: Option<Timestamp>,
        /// The reason to dead-letter the event.
        reason: Reason,
        /// The failed call to SQS.
        failure: CallFailure,
    },
    /// The decision on the message failed because of a bug.
    Undecided(CallFailure),
}

/// The cause in the log for keeping a message that is neither deferred nor held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Lambda refused the re-invocation for now, for example because it throttled the call.
    Refused,
    /// The call to re-invoke the function was never sent.
    NotSent,
    /// The call to re-invoke the function was sent and not answered: Lambda may have accepted it.
    Unanswered,
    /// The event's dead-letter could not be sent.
    DeadLetterNotSent,
    /// The pauses could not be read, so the event's function may be paused.
    PausesUnknown,
    /// `TARGET_FUNCTIONS` is empty, so no function may be re-invoked yet.
    Unattached,
    /// The message is a copy whose wait is not over.
    WaitGoesOn,
    /// The decision failed because of a bug.
    Undecided,
    /// A cause that this version of the log's reader does not know.
    #[serde(other)]
    Other,
}

impl Outcome<'_> {
    /// SQS's id of the message.
    pub fn message_id(&self) -> &str {
        &self.record.message_id
    }

    /// The number of the retry that comes next, or was made; `None` if the message could not be parsed.
    pub fn retry(&self) -> Option<u64> {
        self.event.as_ref().map(|event| event.retry)
    }

    /// The step that the handler took, or tried: `defer`, `keep`, `hold`, `reinvoke` or `dead_letter`; `None` only if
    /// the decision itself failed.
    pub const fn step(&self) -> Option<&'static str> {
        match &self.end {
            End::Hidden { why, .. } | End::Moved { why, .. } => why.step(),
            End::Reinvoked { .. } => Some("reinvoke"),
            End::DeadLettered { .. } => Some("dead_letter"),
        }
    }

    /// Returns true if the message was re-invoked, dead-lettered or moved. Any other message is reported as failed, so
    /// that SQS keeps it.
    pub const fn settled(&self) -> bool {
        match self.end {
            End::Reinvoked { .. } | End::DeadLettered { .. } | End::Moved { .. } => true,
            End::Hidden { .. } => false,
        }
    }

    /// The reason for the message's wait; `None` if it was re-invoked or dead-lettered.
    pub const fn why(&self) -> Option<&Why> {
        match &self.end {
            End::Hidden { why, .. } | End::Moved { why, .. } => Some(why),
            End::Reinvoked { .. } | End::DeadLettered { .. } => None,
        }
    }

    /// The first call for this message that failed; `None` if no call failed.
    pub fn problem(&self) -> Option<&CallFailure> {
        let not_hidden = if let End::Hidden { failure, .. } = &self.end { failure.as_ref() } else { None };
        self.why().and_then(Why::failure).or(not_hidden)
    }

    /// Returns true for a copy that was only moved once more. The log line for its first move has the due time.
    pub fn only_moves_on(&self) -> bool {
        self.delay().is_some() && self.record.moved.is_some() && self.problem().is_none()
    }

    /// When the retry is due, or was when it was made; `None` if that is unknown.
    pub const fn due(&self) -> Option<Timestamp> {
        match &self.end {
            End::Hidden { why, .. } | End::Moved { why, .. } => why.due(),
            End::Reinvoked { due, .. } => Some(*due),
            End::DeadLettered { due, .. } => *due,
        }
    }

    /// The reason to dead-letter the event, even if the dead-letter could not be sent; `None` for any other outcome.
    pub const fn reason(&self) -> Option<&Reason> {
        match &self.end {
            End::DeadLettered { reason, .. }
            | End::Hidden { why: Why::NotDeadLettered { reason, .. }, .. }
            | End::Moved { why: Why::NotDeadLettered { reason, .. }, .. } => Some(reason),
            _ => None,
        }
    }

    /// The message's visibility timeout; `None` if it is not hidden.
    pub const fn visibility_timeout(&self) -> Option<Duration> {
        match self.end {
            End::Hidden { timeout, failure: None, .. } => Some(timeout),
            _ => None,
        }
    }

    /// The receipt handle that lets an operator end the message's hiding early. `None` if the message does not stay
    /// hidden, returns soon anyway, or must not return early.
    pub fn receipt_handle(&self) -> Option<&str> {
        let End::Hidden { why, timeout, is_guard: false, failure: None } = &self.end else { return None };
        (*timeout > NOT_RECALLED && why.may_be_recalled()).then_some(&self.record.receipt_handle)
    }

    /// The delay of the copy that replaces the message; `None` if the message was not moved.
    pub const fn delay(&self) -> Option<Duration> {
        if let End::Moved { delay, .. } = self.end { Some(delay) } else { None }
    }
}

impl End {
    /// Returns true if the log line names the event. The line of a message that waits regardless of its event does not.
    pub(crate) const fn names_its_event(&self) -> bool {
        let (Self::Hidden { why, .. } | Self::Moved { why, .. }) = self else { return true };
        !matches!(why, Why::Kept(Cause::WaitGoesOn | Cause::Unattached))
    }
}

impl Why {
    /// The cause that the message's log line has; `None` if the message is deferred or held.
    pub const fn cause(&self) -> Option<Cause> {
        match self {
            Self::Deferred { .. } | Self::Held { .. } => None,
            Self::Kept(cause) | Self::NotInvoked { cause, .. } => Some(*cause),
            Self::NotDeadLettered { .. } => Some(Cause::DeadLetterNotSent),
            Self::Undecided(_) => Some(Cause::Undecided),
        }
    }

    /// The failed call, if it is why the message waits; otherwise `None`.
    pub const fn failure(&self) -> Option<&CallFailure> {
        match self {
            Self::NotInvoked { failure, .. }
            | Self::NotDeadLettered { failure, .. }
            | Self::Undecided(failure) => Some(failure),
            Self::Deferred { .. } | Self::Held { .. } | Self::Kept(_) => None,
        }
    }

    /// Returns true if an operator may end this wait early.
    const fn may_be_recalled(&self) -> bool {
        match self.cause() {
            None
            | Some(
                Cause::Refused
                | Cause::NotSent
                | Cause::DeadLetterNotSent
                | Cause::PausesUnknown
                | Cause::Unattached,
            ) => true,
            Some(Cause::Unanswered | Cause::WaitGoesOn | Cause::Undecided | Cause::Other) => false,
        }
    }

    const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Deferred { due, .. } | Self::Held { due } | Self::NotInvoked { due, .. } => Some(*due),
            Self::NotDeadLettered { due, .. } => *due,
            Self::Kept(_) | Self::Undecided(_) => None,
        }
    }

    const fn step(&self) -> Option<&'static str> {
        match self {
            Self::Deferred { .. } => Some("defer"),
            Self::Held { .. } => Some("hold"),
            Self::Kept(_) => Some("keep"),
            Self::NotInvoked { .. } => Some("reinvoke"),
            Self::NotDeadLettered { .. } => Some("dead_letter"),
            Self::Undecided(_) => None,
        }
    }
}
