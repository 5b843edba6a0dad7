//! The faults that can be injected into a run.

use std::fmt;
use std::str::FromStr;

/// Effect of a fault on the number of messages in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InFlightEffect {
    /// The number of messages in flight stays within the handler's limit. The fault does not prevent moves, distort
    /// the handler's counts or clock, or keep messages in flight that the handler does not know of.
    Kept,
    Exceeded,
    /// The fault may fill the queue to its in-flight limit.
    Full,
}

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $fault:ident = $name:literal, $rate:literal, $room:ident;)*) => {
        texts! {
            /// A kind of AWS failure to inject. Its rate is per call, batch, message or record, whichever the fault
            /// affects.
            pub enum Fault;
            /// Name of the fault in command-line flags and in JSON.
            pub fn name;

            $($(#[doc = $doc])* $fault = $name,)*
        }

        impl Fault {
            /// Returns the fault's rate throughout a chaos run, and its effect on the number of messages in flight.
            pub(crate) const fn row(self) -> (f64, InFlightEffect) {
                match self {
                    $(Self::$fault => ($rate, InFlightEffect::$room),)*
                }
            }
        }
    };
}

// The chaos rates are high enough for each fault to strike dozens of times in a run of 2,000 events, and low enough
// for most events to be delivered. The handler repeats a refused call up to three times, so refusals have high rates.
// Faults that strike rare calls (counts, dead-letters, reads of pauses) have high rates too.
faults! {
    /// SQS delivers a received message a second time, in the same batch or within an hour.
    DuplicateDelivery = "duplicate_delivery", 0.01, Exceeded;
    /// The receipt handle of a received message is old, and no longer deletes the message.
    StaleReceiptHandle = "stale_receipt_handle", 0.005, Exceeded;
    /// The `ApproximateReceiveCount` of a received message is one too high.
    ReceiveCountHigh = "receive_count_high", 0.01, Kept;
    /// The `ApproximateReceiveCount` of a received message is one too low.
    ReceiveCountLow = "receive_count_low", 0.01, Kept;
    /// SQS refuses a whole `ChangeMessageVisibilityBatch` call.
    VisibilityRefused = "visibility_refused", 0.15, Full;
    /// SQS executes a `ChangeMessageVisibilityBatch` call, but the response is lost.
    VisibilityLost = "visibility_lost", 0.05, Full;
    /// SQS refuses about half of the entries in a `ChangeMessageVisibilityBatch` call.
    VisibilityHalfRefused = "visibility_half_refused", 0.15, Full;
    /// Lambda throttles an `Invoke` call.
    InvokeThrottled = "invoke_throttled", 0.01, Kept;
    /// An `Invoke` call never reaches Lambda, and the handler gets no response.
    InvokeTimedOut = "invoke_timed_out", 0.005, Kept;
    /// Lambda accepts an `Invoke` call, but the response is lost.
    InvokeAnswerLost = "invoke_answer_lost", 0.005, Kept;
    /// The handler crashes before its first call for a batch (rate per batch).
    HandlerDiedBefore = "handler_died_before", 0.005, Full;
    /// The handler crashes after some of its calls for a batch (rate per batch with more than one call).
    HandlerDiedBetween = "handler_died_between", 0.02, Full;
    /// The handler crashes after all of its calls for a batch, but before it responds (rate per batch).
    HandlerDiedAfter = "handler_died_after", 0.005, Full;
    /// The handler times out after some of its calls for a batch (rate per batch).
    HandlerTimedOut = "handler_timed_out", 0.005, Full;
    /// SQS refuses a whole `SendMessageBatch` call to the dead-letter queue.
    DeadLetterRefused = "dead_letter_refused", 0.3, Kept;
    /// SQS executes a `SendMessageBatch` call to the dead-letter queue, but the response is lost.
    DeadLetterLost = "dead_letter_lost", 0.3, Kept;
    /// Lambda throttles the poller, so the handler never sees a batch of received messages.
    PollerThrottled = "poller_throttled", 0.01, Exceeded;
    /// The handler's clock is up to 5 s ahead of or behind SQS's clock during a batch.
    ClockSkew = "clock_skew", 0.2, Exceeded;
    /// The handler fails before its first call for a batch, as in an outage (rate per batch).
    HandlerOutage = "handler_outage", 0.0, Full;
    /// SQS returns no messages to a poll, as if the in-flight limit were reached (rate per poll).
    InFlightLimit = "in_flight_limit", 0.0, Full;
    /// A message that is passed to the handler lacks a field that SQS always sets.
    IncompleteMessage = "incomplete_message", 0.005, Exceeded;
    /// An invocation record lacks a member, possibly a required one.
    IncompleteRecord = "incomplete_record", 0.01, Kept;
    /// The error in an otherwise unchanged invocation record is a `RetryAfter` with an absurd message.
    HostileMessage = "hostile_message", 0.005, Exceeded;
    /// An invocation record names [`UNLISTED_ARN`](crate::UNLISTED_ARN), which the policy must not allow.
    UnlistedFunction = "unlisted_function", 0.005, Kept;
    /// SQS refuses a `SendMessageBatch` call to the retry queue with a permanent error.
    MoveRefused = "move_refused", 0.02, Exceeded;
    /// SQS throttles a `SendMessageBatch` call to the retry queue.
    MoveThrottled = "move_throttled", 0.1, Exceeded;
    /// SQS executes a `SendMessageBatch` call to the retry queue, but the response is lost.
    MoveLost = "move_lost", 0.03, Exceeded;
    /// The handler crashes right after it has moved messages from a batch (rate per batch with moves).
    HandlerDiedAfterMove = "handler_died_after_move", 0.01, Full;
    /// The event source mapping's `DeleteMessageBatch` call for a batch has no effect.
    DeleteLost = "delete_lost", 0.005, Full;
    /// A count of the messages in flight fails (rate per count).
    CountFailed = "count_failed", 0.2, Kept;
    /// A count of the messages in flight is ten minutes old (rate per count).
    CountStale = "count_stale", 0.2, Full;
    /// A moved message's copy has only half of its message attribute, so the copy counts as a new message. The rate is
    /// per moved message whose record has a timestamp and a request id.
    AttributeGarbled = "attribute_garbled", 0.005, Kept;
    /// The copy of a moved message has no message attribute, so the copy counts as a new message. The rate is per moved
    /// message whose record has a timestamp and a request id.
    AttributeStripped = "attribute_stripped", 0.005, Kept;
    /// A read of the pauses is denied (rate per read).
    PausesDenied = "pauses_denied", 0.05, Kept;
    /// A read of the pauses is throttled (rate per read).
    PausesThrottled = "pauses_throttled", 0.05, Kept;
    /// The response to a read of the pauses comes too late (rate per read).
    PausesLate = "pauses_late", 0.05, Kept;
    /// A read of the pauses returns an unreadable value (rate per read of a parameter that has a value).
    PausesGarbled = "pauses_garbled", 0.05, Kept;
    /// A read of the pauses returns the value that the parameter had ten minutes earlier (rate per read).
    PausesStale = "pauses_stale", 0.05, Kept;
    /// A sent message reaches the end of its retention period within 12 hours, and its event counts as `expired`.
    RetentionEnded = "retention_ended", 0.0, Exceeded;
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown = || format!("must be one of {}", Self::ALL.map(Self::name).join(", "));
        Self::ALL.into_iter().find(|fault| fault.name() == name).ok_or_else(unknown)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
