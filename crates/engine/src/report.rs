//! The outcome of a batch, message by message: what the response and every log line are made of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::CallFailure;
use crate::batch_event::{BatchEvent, MissingMessageId};
use crate::failed_event::FailedEvent;
use crate::{Directive, DueBy, Early, Pause, Reason, Record, Timestamp, TraceHeader};

/// The outcome of a batch, one [`Outcome`] for each message.
#[derive(Clone, Debug)]
pub struct BatchReport<'a> {
    /// The batch.
    pub batch: &'a BatchEvent,
    /// Why the whole batch was kept untouched; `None` if it was handled.
    pub kept_whole: Option<MissingMessageId>,
    /// In the order of the batch; for a message delivered twice in it, the later copy.
    pub outcomes: Vec<Outcome<'a>>,
    /// What came of the batch's moves.
    pub moves: Moves,
    /// Why messages could not be hidden before they were re-invoked, if so. If this handler dies, their calls are repeated
    /// after the queue's own visibility timeout.
    pub unguarded: Option<CallFailure>,
    /// Why a look at the queue gave no count. Until the next one there is no room for hidden messages.
    pub look_failure: Option<CallFailure>,
    /// The result of reading the pauses, if they were read.
    pub pauses: Option<PausesRead>,
}

/// The result of reading the pauses.
#[derive(Clone, Debug, PartialEq)]
pub enum PausesRead {
    /// The pauses.
    Known {
        /// Those that are open for over 24 hours: they may have been forgotten.
        long: Vec<Pause>,
        /// What is wrong with entries of `retries`, which are ignored.
        unreadable_retries: Vec<String>,
    },
    /// The read failed. The pauses known before still count.
    AsBefore(CallFailure),
    /// The read failed, like every one before it in this environment. Any function may be paused, so none is invoked, and
    /// no event is too old.
    Unknown(CallFailure),
}

/// What came of a batch's moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Sent again, each with a delay.
    pub made: usize,
    /// Hidden instead, because they could not be sent.
    pub failed: usize,
    /// Why the first of those could not be sent.
    pub problem: Option<CallFailure>,
}

impl<'a> BatchReport<'a> {
    /// Nothing was done yet. If a message has no id, nothing will be.
    pub fn new(batch: &'a BatchEvent) -> Self {
        Self {
            batch,
            kept_whole: batch.check_ids().err(),
            outcomes: Vec::new(),
            moves: Moves::default(),
            unguarded: None,
            look_failure: None,
            pauses: None,
        }
    }

    /// The ids for `batchItemFailures`: every message that SQS must keep. An empty one makes Lambda keep the whole batch.
    pub fn batch_item_failures(&self) -> impl Iterator<Item = &'a str> {
        let untouched = if self.kept_whole.is_some() { self.batch.records.as_slice() } else { &[] };
        let untouched = untouched.iter().map(|record| record.message_id.as_str());
        let unsettled = self.outcomes.iter().filter(|outcome| !outcome.settled());
        let incomplete = self.batch.incomplete.iter().map(|message| message.message_id.as_str());
        untouched.chain(unsettled.map(|outcome| outcome.message_id)).chain(incomplete)
    }
}

/// What was decided for a message, and whether it worked: everything a log line needs.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// SQS's id.
    pub message_id: &'a str,
    /// Its retry; `None` if the message could not be parsed.
    pub retry: Option<Retry>,
    /// The step; `None` only if deciding itself failed.
    pub step: Option<Step>,
    /// The request id of the new invocation; `None` if none was accepted, or Lambda did not name it.
    pub invoke_request_id: Option<String>,
    /// Why it is kept instead, if neither its retry's due time nor a pause keeps it.
    pub kept: Option<Cause>,
    /// What went wrong with the step.
    pub problem: Option<CallFailure>,
    /// How long the message was hidden after a failed call; `None` if no call failed, or the hiding failed too.
    pub hidden_for: Option<Duration>,
    /// The delay with which it was sent again instead of being hidden. The copy takes its place.
    pub moved: Option<Duration>,
    /// When the handler checks that copy again, if it waits for a reason other than its backoff; several moves may take it
    /// there.
    pub not_before: Option<Timestamp>,
    /// What gave the due time of a deferred message.
    pub due_by: Option<DueBy>,
    /// The retry request that moved the retry forward, if one did.
    pub early: Option<Early>,
    /// Whether the message is such a copy itself.
    pub is_copy: bool,
    /// Whether nobody received it before: the event has just failed.
    pub is_first_receive: bool,
    /// The id of the X-Ray trace that it belongs to, as does its re-invocation.
    pub trace: Option<&'a str>,
}

/// Why a message is kept that is neither deferred nor held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Lambda refused the re-invocation, for now.
    Refused,
    /// The re-invocation was not sent.
    NotSent,
    /// The re-invocation was sent and not answered: Lambda may have accepted it.
    Unanswered,
    /// The dead-letter could not be sent.
    DeadLetterNotSent,
    /// The pauses could not be read, so its function may be paused.
    PausesUnknown,
    /// The allow-list is empty.
    Unattached,
    /// It is a copy, and a wait that began before it was moved goes on.
    WaitGoesOn,
    /// The rules have failed on it.
    Undecided,
    /// A cause that this version does not know.
    #[serde(other)]
    Other,
}

/// A retry of an event, and what finds the event in the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The target.
    pub function_arn: String,
    /// 1 for the first.
    pub number: u64,
    /// The event's `origin_request_id`: the same on every retry.
    pub key: String,
    /// The request id of the invocation that failed before this retry, if the record names it.
    pub request_id: Option<String>,
    /// The type of its error, where that is known.
    pub error_type: Option<String>,
    /// What the function asks for by that error, unless `DIRECTIVES` is off.
    pub directive: Option<Directive>,
    /// When the event first failed, to the second.
    pub first_failure: Timestamp,
    /// The entry of `POLICIES` that counts for it, by its pattern. `None` if the policy is the stack's.
    pub policy: Option<String>,
}

/// The step that was taken, or tried, for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Hide it and keep it.
    Defer {
        /// When the retry is due.
        due: Timestamp,
        /// How long it is hidden.
        visibility_timeout: Duration,
    },
    /// Hide it and keep it, without a decision: no function may be re-invoked yet, the wait after an earlier failed step
    /// is not over, or it is not known whether its function is paused.
    Keep {
        /// How long it is hidden.
        visibility_timeout: Duration,
    },
    /// Hide it and keep it, because its function is paused.
    Hold {
        /// When the retry was due.
        due: Timestamp,
        /// How long it is hidden, until the handler checks it again.
        visibility_timeout: Duration,
    },
    /// Call the target again.
    Reinvoke {
        /// When the retry was due.
        due: Timestamp,
    },
    /// Send it to the dead-letter queue.
    DeadLetter {
        /// When the retry was due, if it was the target that refused it.
        due: Option<Timestamp>,
        /// Why the event is given up.
        reason: Reason,
    },
}

impl Step {
    /// `defer`, `keep`, `hold`, `reinvoke` or `dead_letter`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Defer { .. } => "defer",
            Self::Keep { .. } => "keep",
            Self::Hold { .. } => "hold",
            Self::Reinvoke { .. } => "reinvoke",
            Self::DeadLetter { .. } => "dead_letter",
        }
    }

    /// How long the message is hidden, if it is kept.
    const fn visibility_timeout(&self) -> Option<Duration> {
        match self {
            Self::Defer { visibility_timeout, .. }
            | Self::Keep { visibility_timeout }
            | Self::Hold { visibility_timeout, .. } => Some(*visibility_timeout),
            Self::Reinvoke { .. } | Self::DeadLetter { .. } => None,
        }
    }

    /// Changes how long the message is hidden, if it is kept.
    pub(crate) const fn hide_for(&mut self, timeout: Duration) {
        match self {
            Self::Defer { visibility_timeout, .. }
            | Self::Keep { visibility_timeout }
            | Self::Hold { visibility_timeout, .. } => *visibility_timeout = timeout,
            Self::Reinvoke { .. } | Self::DeadLetter { .. } => {}
        }
    }
}

impl<'a> Outcome<'a> {
    /// Nothing was decided yet.
    pub(crate) fn of(record: &'a Record) -> Self {
        Self {
            message_id: &record.message_id,
            retry: None,
            step: None,
            invoke_request_id: None,
            kept: None,
            problem: None,
            hidden_for: None,
            moved: None,
            not_before: None,
            due_by: None,
            early: None,
            is_copy: record.moved.is_some(),
            is_first_receive: record.is_first_receive(),
            trace: TraceHeader::of(record).map(TraceHeader::root),
        }
    }

    /// Re-invoked, dead-lettered or moved. Anything else is reported failed, so that SQS keeps it.
    pub const fn settled(&self) -> bool {
        if self.moved.is_some() {
            return true;
        }
        match self.step {
            Some(Step::Reinvoke { .. } | Step::DeadLetter { .. }) => self.problem.is_none(),
            Some(Step::Defer { .. } | Step::Keep { .. } | Step::Hold { .. }) | None => false,
        }
    }

    /// Whether it is a copy that was only moved once more. Its first move has named the due time.
    pub const fn only_moves_on(&self) -> bool {
        self.moved.is_some() && self.is_copy && self.problem.is_none()
    }

    /// When the retry is due.
    pub const fn due(&self) -> Option<Timestamp> {
        match self.step {
            Some(Step::Defer { due, .. } | Step::Hold { due, .. } | Step::Reinvoke { due }) => Some(due),
            Some(Step::DeadLetter { due, .. }) => due,
            Some(Step::Keep { .. }) | None => None,
        }
    }

    /// Why the event is given up.
    pub const fn reason(&self) -> Option<&Reason> {
        match &self.step {
            Some(Step::DeadLetter { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// How long the message is hidden, as decided or after a failed call; `None` if it was moved.
    pub fn visibility_timeout(&self) -> Option<Duration> {
        if self.moved.is_some() {
            return None;
        }
        self.step.as_ref().and_then(Step::visibility_timeout).or(self.hidden_for)
    }
}

impl Retry {
    /// Under the stack's policy.
    pub(crate) fn of(event: &FailedEvent<'_>) -> Self {
        Self {
            function_arn: event.function_arn.to_string(),
            number: event.retry,
            key: event.origin_request_id.clone(),
            request_id: event.request_id.clone(),
            error_type: event.error_type().map(Into::into),
            directive: event.directive.clone(),
            first_failure: event.first_failure,
            policy: None,
        }
    }
}
