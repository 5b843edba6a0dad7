use std::fmt;
use std::str::FromStr;

/// Something that goes wrong on AWS. Each says what its rate is a share *of*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Of the messages received: SQS hands it out again while it is hidden, in the same batch or
    /// within the hour.
    DuplicateDelivery,
    /// Of the messages received: its receipt handle is stale from the start, so that it comes back
    /// after the queue's own visibility timeout.
    StaleReceiptHandle,
    /// Of the messages received: `ApproximateReceiveCount` is one too high.
    ReceiveCountHigh,
    /// Of the messages received: `ApproximateReceiveCount` is one too low.
    ReceiveCountLow,
    /// Of the `ChangeMessageVisibilityBatch` calls: refused whole.
    VisibilityRefused,
    /// Of the `ChangeMessageVisibilityBatch` calls: done, but the answer is lost.
    VisibilityLost,
    /// Of the `ChangeMessageVisibilityBatch` calls: about half of the entries are refused.
    VisibilityHalfRefused,
    /// Of the `Invoke` calls: throttled.
    InvokeThrottled,
    /// Of the `Invoke` calls: it never reaches Lambda, and no answer comes.
    InvokeTimedOut,
    /// Of the `Invoke` calls: accepted, but the answer is lost.
    InvokeAnswerLost,
    /// Of the batches: the handler dies before its first call.
    HandlerDiedBefore,
    /// Of the batches: the handler dies with some of its calls made. Strikes only batches that take
    /// more than one.
    HandlerDiedBetween,
    /// Of the batches: the handler dies with all of its calls made and nothing answered.
    HandlerDiedAfter,
    /// Of the batches: the handler is slow, makes some calls and is stopped by its timeout.
    HandlerTimedOut,
    /// Of the `SendMessageBatch` calls to the dead-letter queue: refused whole.
    DeadLetterRefused,
    /// Of the `SendMessageBatch` calls to the dead-letter queue: done, but the answer is lost.
    DeadLetterLost,
    /// Of the batches: Lambda throttles the poller. The messages were received, the handler never
    /// sees them.
    PollerThrottled,
    /// Of the batches: the handler's clock is up to 5 s ahead of SQS's or behind it.
    ClockSkew,
    /// Of the batches: the handler fails before its first call. Within a window this is an outage.
    HandlerOutage,
    /// Of the polls: nothing is handed out, as at the in-flight limit.
    InFlightLimit,
    /// Of the messages handed to the handler: a field that SQS always writes is missing.
    IncompleteMessage,
    /// Of the invocation records: a member is missing, required or not.
    IncompleteRecord,
    /// Of the invocation records that are otherwise whole: its error is a `RetryAfter` whose message nobody would write.
    HostileMessage,
    /// Of the invocation records: it names a function that is not on `TARGET_FUNCTIONS`. The policy
    /// under test must not allow that function.
    UnlistedFunction,
    /// Of the `SendMessageBatch` calls to the retry queue, which move messages: refused for good.
    MoveRefused,
    /// Of the same calls: throttled.
    MoveThrottled,
    /// Of the same calls: done, but the answer is lost.
    MoveLost,
    /// Of the batches: the handler dies once it has moved messages. Strikes only batches with moves.
    HandlerDiedAfterMove,
    /// Of the batches: the event source mapping's `DeleteMessageBatch` does nothing.
    DeleteLost,
    /// Of the looks at the queue: no count comes.
    LookFailed,
    /// Of the looks at the queue: the count is ten minutes old, instead of a minute at most.
    LookStale,
    /// Of the messages moved: the copy's attribute cannot be read. It counts as a new message. Strikes only
    /// those whose record says when it was written.
    AttributeGarbled,
    /// Of the same messages: the copy has lost the attribute, and counts as a new message.
    AttributeStripped,
    /// Of the batches: a handler takes it that is older than moves and pauses. It ignores the attribute, hides
    /// every message, and reads no pauses.
    OldHandler,
    /// Of the reads of the pauses: denied.
    PausesDenied,
    /// Of the reads of the pauses: throttled.
    PausesThrottled,
    /// Of the reads of the pauses: the answer comes too late.
    PausesLate,
    /// Of the reads of the pauses that find any: the text is unreadable.
    PausesGarbled,
    /// Of the reads of the pauses: the answer is ten minutes old.
    PausesStale,
    /// Of the messages sent: its retention ends within 12 hours. Such events are counted as
    /// `expired`. Never part of [`Faults::chaos`](crate::Faults::chaos), because no handler could prevent it.
    RetentionEnded,
}

impl Fault {
    /// Every fault, in the order of the documentation.
    pub const ALL: [Self; 40] = [
        Self::DuplicateDelivery,
        Self::StaleReceiptHandle,
        Self::ReceiveCountHigh,
        Self::ReceiveCountLow,
        Self::VisibilityRefused,
        Self::VisibilityLost,
        Self::VisibilityHalfRefused,
        Self::InvokeThrottled,
        Self::InvokeTimedOut,
        Self::InvokeAnswerLost,
        Self::HandlerDiedBefore,
        Self::HandlerDiedBetween,
        Self::HandlerDiedAfter,
        Self::HandlerTimedOut,
        Self::DeadLetterRefused,
        Self::DeadLetterLost,
        Self::PollerThrottled,
        Self::ClockSkew,
        Self::HandlerOutage,
        Self::InFlightLimit,
        Self::IncompleteMessage,
        Self::IncompleteRecord,
        Self::HostileMessage,
        Self::UnlistedFunction,
        Self::MoveRefused,
        Self::MoveThrottled,
        Self::MoveLost,
        Self::HandlerDiedAfterMove,
        Self::DeleteLost,
        Self::LookFailed,
        Self::LookStale,
        Self::AttributeGarbled,
        Self::AttributeStripped,
        Self::OldHandler,
        Self::PausesDenied,
        Self::PausesThrottled,
        Self::PausesLate,
        Self::PausesGarbled,
        Self::PausesStale,
        Self::RetentionEnded,
    ];

    /// Its name in flags and in JSON, which its dice are seeded with too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuplicateDelivery => "duplicate_delivery",
            Self::StaleReceiptHandle => "stale_receipt_handle",
            Self::ReceiveCountHigh => "receive_count_high",
            Self::ReceiveCountLow => "receive_count_low",
            Self::VisibilityRefused => "visibility_refused",
            Self::VisibilityLost => "visibility_lost",
            Self::VisibilityHalfRefused => "visibility_half_refused",
            Self::InvokeThrottled => "invoke_throttled",
            Self::InvokeTimedOut => "invoke_timed_out",
            Self::InvokeAnswerLost => "invoke_answer_lost",
            Self::HandlerDiedBefore => "handler_died_before",
            Self::HandlerDiedBetween => "handler_died_between",
            Self::HandlerDiedAfter => "handler_died_after",
            Self::HandlerTimedOut => "handler_timed_out",
            Self::DeadLetterRefused => "dead_letter_refused",
            Self::DeadLetterLost => "dead_letter_lost",
            Self::PollerThrottled => "poller_throttled",
            Self::ClockSkew => "clock_skew",
            Self::HandlerOutage => "handler_outage",
            Self::InFlightLimit => "in_flight_limit",
            Self::IncompleteMessage => "incomplete_message",
            Self::IncompleteRecord => "incomplete_record",
            Self::HostileMessage => "hostile_message",
            Self::UnlistedFunction => "unlisted_function",
            Self::MoveRefused => "move_refused",
            Self::MoveThrottled => "move_throttled",
            Self::MoveLost => "move_lost",
            Self::HandlerDiedAfterMove => "handler_died_after_move",
            Self::DeleteLost => "delete_lost",
            Self::LookFailed => "look_failed",
            Self::LookStale => "look_stale",
            Self::AttributeGarbled => "attribute_garbled",
            Self::AttributeStripped => "attribute_stripped",
            Self::OldHandler => "old_handler",
            Self::PausesDenied => "pauses_denied",
            Self::PausesThrottled => "pauses_throttled",
            Self::PausesLate => "pauses_late",
            Self::PausesGarbled => "pauses_garbled",
            Self::PausesStale => "pauses_stale",
            Self::RetentionEnded => "retention_ended",
        }
    }
}

/// No fault has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFault;

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        Self::ALL.into_iter().find(|fault| fault.name() == name).ok_or(UnknownFault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Fault::ALL.map(Fault::name);
        write!(f, "must be one of {}", names.join(", "))
    }
}

impl std::error::Error for UnknownFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (index, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault.name().parse(), Ok(fault));
            assert_eq!(fault as usize, index, "dice are in this order");
        }
        let refused = "gremlins".parse::<Fault>().unwrap_err().to_string();
        assert!(refused.starts_with("must be one of duplicate_delivery, stale_receipt_handle,"), "{refused}");
    }
}
