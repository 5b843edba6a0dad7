//! The outcome of a message in a batch, as its log line describes it.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::account::CallFailure;
use crate::dead_letter::{Reason, ReasonCode};
use crate::failed_event::{FailedEvent, logged};
use crate::record::Record;
use crate::time::Timestamp;

/// A message that is hidden for at most this long is not made visible early, because it becomes visible soon anyway.
pub(crate) const NOT_RECALLED: Duration = Duration::from_secs(120);

/// The outcome of a message in a batch, with everything that its log line needs.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The message as received.
    pub record: &'a Record,
    /// The event in the message; `None` if the message could not be parsed or needed no decision.
    pub event: Option<FailedEvent<'a>>,
    /// The pattern of the `POLICIES` entry that applies to the event's function; `None` if the stack's policy
    /// applies.
    pub policy: Option<String>,
    /// The handler's action, as reported in the message's log line.
    pub what: What,
    /// Where the message is when the batch ends.
    pub location: Location,
}

/// Where a message is when its batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// The message is in the retry queue, hidden until its wait ends. For a long wait, SQS's limit ends the hiding
    /// earlier.
    Hidden,
    /// The message is in the retry queue, hidden so that a call that may have been accepted is not repeated soon.
    Guarded,
    /// The message is in the retry queue and could not be hidden, so its current visibility timeout continues.
    NotHidden,
    /// A delayed copy replaced the message in the retry queue.
    Moved,
    /// The function was re-invoked with the event, or the event was dead-lettered, so the message is deleted.
    Settled,
}

/// The step that the handler took for a message, or tried to take. Durations are in whole seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum What {
    /// The message is waiting until its retry is due.
    Defer {
        /// When the retry is due.
        due: Timestamp,
        /// The rule or request that set the due time.
        due_by: DueBy,
        /// The visibility timeout of the message, or the delay of its copy.
        delay: u64,
        /// The operator's retry request that brought the retry forward; `None` if no request did.
        #[serde(flatten)]
        early: Option<Early>,
        /// The error if the message could not be hidden; `None` if it was hidden or moved.
        #[serde(flatten)]
        failure: Option<CallFailure>,
    },
    /// The message is waiting because its function is paused.
    Hold {
        /// When the retry was due.
        due: Timestamp,
        /// The visibility timeout of the message, or the delay of its copy.
        delay: u64,
        /// If the message was moved, the time at which the handler will check the moved message again; otherwise
        /// `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
        /// The error if the message could not be hidden; `None` if it was hidden or moved.
        #[serde(flatten)]
        failure: Option<CallFailure>,
    },
    /// The target function was re-invoked, so the message is deleted.
    Reinvoke {
        /// When the retry was due.
        due: Timestamp,
        /// The request id of the new invocation; `None` if Lambda's response had none.
        #[serde(default, serialize_with = "cut", skip_serializing_if = "Option::is_none")]
        invoke_request_id: Option<String>,
        /// The operator's retry request that brought the retry forward; `None` if no request did.
        #[serde(flatten)]
        early: Option<Early>,
    },
    /// The event was dead-lettered, so the message is deleted.
    DeadLetter {
        /// The reason for dead-lettering the event.
        #[serde(flatten)]
        reason: Reason,
        /// When the retry was due, if the target refused the retry; otherwise `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
    },
    /// The message is kept, and the handler will try again.
    Keep {
        /// The reason for keeping the message.
        cause: Cause,
        /// The visibility timeout of the message, or the delay of its copy; `None` if the message could not be hidden.
        #[serde(skip_serializing_if = "Option::is_none")]
        delay: Option<u64>,
        /// If the message was moved, the time at which the handler will check the moved message again; otherwise
        /// `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
        /// The reason for dead-lettering the event, if the dead-letter could not be sent; otherwise `None`. The log
        /// line has only the reason's code.
        #[serde(
            default,
            serialize_with = "code",
            deserialize_with = "without_words",
            skip_serializing_if = "Option::is_none"
        )]
        reason: Option<Reason>,
        /// When the retry was due, if the handler attempted it; otherwise `None`. Not part of the log line.
        #[serde(skip)]
        due: Option<Timestamp>,
        /// The failed call that made the handler keep the message. Otherwise, the failed call to hide the message, if
        /// any.
        #[serde(flatten)]
        failure: Option<CallFailure>,
    },
}

/// The reason for keeping a message that is neither deferred nor held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Lambda refused the re-invocation for now, for example because the call was throttled.
    Refused,
    /// The call to re-invoke the function was never sent.
    NotSent,
    /// The call to re-invoke the function was sent, but Lambda did not respond, so it may have accepted the event.
    Unanswered,
    /// The event's dead-letter could not be sent.
    DeadLetterNotSent,
    /// The pauses could not be read, so the event's function might be paused.
    PausesUnknown,
    /// `TARGET_FUNCTIONS` is empty, so no function may be re-invoked yet.
    Unattached,
    /// The message was moved, and its wait is not over.
    WaitGoesOn,
    /// The decision failed because of a bug.
    Undecided,
    /// A cause that this version cannot read, because a later version wrote the log line.
    #[serde(other)]
    Other,
}

/// The rule or request that set a retry's due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DueBy {
    /// The due time was set by the backoff in the function's policy.
    Policy,
    /// A `RetryAfter` error that the function returned.
    RetryAfter,
    /// The due time was set by the end of a pause.
    Pause,
    /// An operator's [retry request](crate::Request).
    RetryNow,
}

/// The effect of an operator's retry request that brought a retry forward.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Early {
    /// The retry's due time without the request.
    pub otherwise_due: Timestamp,
    /// When the operator made the request.
    pub asked_at: Timestamp,
    /// The operator who made the request; `None` if the request does not name one.
    #[serde(default, serialize_with = "cut", skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
}

impl Outcome<'_> {
    /// SQS's id for the message.
    pub fn message_id(&self) -> &str {
        &self.record.message_id
    }

    /// The number of the retry that comes next or was just made; `None` if the message could not be parsed.
    pub fn retry(&self) -> Option<u64> {
        self.event.as_ref().map(|event| event.retry)
    }

    /// The step that the handler took or tried to take: `defer`, `keep`, `hold`, `reinvoke` or `dead_letter`. `None` if
    /// it is unknown.
    pub const fn step(&self) -> Option<&'static str> {
        match self.what {
            What::Defer { .. } => Some("defer"),
            What::Hold { .. } => Some("hold"),
            What::Reinvoke { .. } => Some("reinvoke"),
            What::DeadLetter { .. } => Some("dead_letter"),
            What::Keep { cause, .. } => match cause {
                Cause::Refused | Cause::NotSent | Cause::Unanswered => Some("reinvoke"),
                Cause::DeadLetterNotSent => Some("dead_letter"),
                Cause::PausesUnknown | Cause::Unattached | Cause::WaitGoesOn => Some("keep"),
                Cause::Undecided | Cause::Other => None,
            },
        }
    }

    /// Returns true if the message was re-invoked, dead-lettered or moved, so that SQS need not keep it.
    pub const fn settled(&self) -> bool {
        matches!(self.location, Location::Settled | Location::Moved)
    }

    /// The first failed call for this message; `None` if no call failed.
    pub const fn problem(&self) -> Option<&CallFailure> {
        self.what.failure()
    }

    /// Returns true if the message is a copy that was only moved again. Such an outcome needs no log line.
    pub fn only_moves_on(&self) -> bool {
        self.location == Location::Moved && self.record.moved.is_some() && self.problem().is_none()
    }

    /// The time when the retry is or was due. `None` if that time is unknown.
    pub const fn due(&self) -> Option<Timestamp> {
        match self.what {
            What::Defer { due, .. } | What::Hold { due, .. } | What::Reinvoke { due, .. } => Some(due),
            What::DeadLetter { due, .. } | What::Keep { due, .. } => due,
        }
    }

    /// The reason for dead-lettering the event, even if the dead-letter could not be sent; `None` for any other
    /// outcome.
    pub const fn reason(&self) -> Option<&Reason> {
        match &self.what {
            What::DeadLetter { reason, .. } => Some(reason),
            What::Keep { reason, .. } => reason.as_ref(),
            What::Defer { .. } | What::Hold { .. } | What::Reinvoke { .. } => None,
        }
    }

    /// The message's visibility timeout, or `None` if the message is not hidden.
    pub fn visibility_timeout(&self) -> Option<Duration> {
        let is_hidden = matches!(self.location, Location::Hidden | Location::Guarded);
        self.what.delay().filter(|_| is_hidden)
    }

    /// The delay of the copy that replaces the message, or `None` if the message was not moved.
    pub fn delay(&self) -> Option<Duration> {
        self.what.delay().filter(|_| self.location == Location::Moved)
    }

    /// The receipt handle for making the message visible early; `None` if that is unsafe or unnecessary.
    pub fn receipt_handle(&self) -> Option<&str> {
        let may_return = self.location == Location::Hidden && self.what.may_be_recalled();
        let stays = may_return && self.what.delay()? > NOT_RECALLED;
        stays.then_some(&self.record.receipt_handle)
    }
}

impl What {
    /// Creates a [`Keep`](Self::Keep) without a delay, which is set later.
    pub(crate) const fn kept(
        cause: Cause,
        due: Option<Timestamp>,
        reason: Option<Reason>,
        failure: Option<CallFailure>,
    ) -> Self {
        Self::Keep { cause, delay: None, not_before: None, reason, due, failure }
    }

    /// Sets the message's wait: its visibility timeout or, if it was moved, the delay of its copy.
    pub(crate) fn with_wait(
        self,
        wait: Duration,
        until: Option<Timestamp>,
        not_hidden: Option<CallFailure>,
    ) -> Self {
        let secs = wait.as_secs();
        match self {
            Self::Defer { due, due_by, early, .. } => {
                Self::Defer { due, due_by, delay: secs, early, failure: not_hidden }
            }
            Self::Hold { due, .. } => Self::Hold { due, delay: secs, not_before: until, failure: not_hidden },
            Self::Keep { cause, reason, due, failure, .. } => {
                let delay = not_hidden.is_none().then_some(secs);
                let failure = failure.or(not_hidden);
                Self::Keep { cause, delay, not_before: until, reason, due, failure }
            }
            settled @ (Self::Reinvoke { .. } | Self::DeadLetter { .. }) => settled,
        }
    }

    /// Returns true if the message left the queue because the function was re-invoked with its event, or because the
    /// event was dead-lettered.
    pub const fn settles(&self) -> bool {
        match self {
            Self::Reinvoke { .. } | Self::DeadLetter { .. } => true,
            Self::Defer { .. } | Self::Hold { .. } | Self::Keep { .. } => false,
        }
    }

    /// The request id of the new invocation; `None` if there was no invocation, or if Lambda's response had no id.
    pub fn invoke_request_id(&self) -> Option<&str> {
        match self {
            Self::Reinvoke { invoke_request_id, .. } => invoke_request_id.as_deref(),
            _ => None,
        }
    }

    /// The failed call that this outcome reports; `None` if no call failed.
    pub const fn failure(&self) -> Option<&CallFailure> {
        match self {
            Self::Defer { failure, .. } | Self::Hold { failure, .. } | Self::Keep { failure, .. } => {
                failure.as_ref()
            }
            Self::Reinvoke { .. } | Self::DeadLetter { .. } => None,
        }
    }

    /// Returns true if the outcome names the message's event, and false if the message is kept for an unrelated reason.
    pub(crate) const fn names_its_event(&self) -> bool {
        !matches!(self, Self::Keep { cause: Cause::WaitGoesOn | Cause::Unattached, .. })
    }

    const fn may_be_recalled(&self) -> bool {
        let Self::Keep { cause, .. } = self else { return true };
        match cause {
            Cause::Refused
            | Cause::NotSent
            | Cause::DeadLetterNotSent
            | Cause::PausesUnknown
            | Cause::Unattached => true,
            Cause::Unanswered | Cause::WaitGoesOn | Cause::Undecided | Cause::Other => false,
        }
    }

    fn delay(&self) -> Option<Duration> {
        match *self {
            Self::Defer { delay, .. } | Self::Hold { delay, .. } => Some(Duration::from_secs(delay)),
            Self::Keep { delay, .. } => delay.map(Duration::from_secs),
            Self::Reinvoke { .. } | Self::DeadLetter { .. } => None,
        }
    }
}

fn cut<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().map(logged).serialize(serializer)
}

fn code<S: Serializer>(reason: &Option<Reason>, serializer: S) -> Result<S::Ok, S::Error> {
    reason.as_ref().map(|reason| reason.code).serialize(serializer)
}

fn without_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reason>, D::Error> {
    Ok(Option::<ReasonCode>::deserialize(deserializer)?.map(|code| Reason::new(code, "")))
}
