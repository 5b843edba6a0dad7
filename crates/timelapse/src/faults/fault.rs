//! The faults that can be injected into a run.

use std::fmt;
use std::str::FromStr;

/// Effect of a fault on the number of messages in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// The number of messages in flight stays within the handler's limit. The fault does not prevent moves, distort
    /// the handler's counts or clock, or keep messages in flight that the handler does not know of.
    Kept,
    Exceeded,
    /// The fault may fill the queue to its in-flight limit: directly, through outdated counts, or because repeated
    /// strikes leave messages behind.
    Full,
}

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $fault:ident = $name:literal, $rate:literal, $room:ident;)*) => {
        texts! {
            /// A kind of AWS failure to inject. Each variant says what its rate applies to.
            pub enum Fault;
            /// Name of the fault in command-line flags and in JSON. The name also seeds the fault's random number
            /// generator.
            pub fn name;

            $($(#[doc = $doc])* $fault = $name,)*
        }

        impl Fault {
            /// Returns the fault's rate throughout a chaos run, and its effect on the number of messages in flight.
            /// The rate is 0 for a fault that strikes only in a window or never.
            pub(crate) const fn row(self) -> (f64, Room) {
                match self {
                    $(Self::$fault => ($rate, Room::$room),)*
                }
            }
        }
    };
}

// The chaos rates are high enough for each fault to strike dozens of times in a run of 2,000 events, and low enough
// for most events to be delivered. The handler repeats a refused call up to three times, so refusals have high rates.
// Faults that strike rare calls (counts, dead-letters, reads of pauses) have high rates too.
faults! {
    /// SQS delivers a hidden message again, in the same batch or within the hour. The rate is per message received.
    DuplicateDelivery = "duplicate_delivery", 0.01, Exceeded;
    /// The handler gets an old receipt handle, which no longer deletes the message. The message comes back when its
    /// visibility timeout ends. The rate is per message received.
    StaleReceiptHandle = "stale_receipt_handle", 0.005, Exceeded;
    /// The `ApproximateReceiveCount` of a received message is one too high. The rate is per message received.
    ReceiveCountHigh = "receive_count_high", 0.01, Kept;
    /// The `ApproximateReceiveCount` of a received message is one too low. The rate is per message received.
    ReceiveCountLow = "receive_count_low", 0.01, Kept;
    /// SQS refuses a whole `ChangeMessageVisibilityBatch` call. The rate is per call.
    VisibilityRefused = "visibility_refused", 0.15, Full;
    /// SQS executes a `ChangeMessageVisibilityBatch` call, but the response is lost. The rate is per call.
    VisibilityLost = "visibility_lost", 0.05, Full;
    /// SQS refuses about half of the entries in a `ChangeMessageVisibilityBatch` call. The rate is per call.
    VisibilityHalfRefused = "visibility_half_refused", 0.15, Full;
    /// Lambda throttles an `Invoke` call. The rate is per call.
    InvokeThrottled = "invoke_throttled", 0.01, Kept;
    /// An `Invoke` call never reaches Lambda, and the handler gets no response. The rate is per call.
    InvokeTimedOut = "invoke_timed_out", 0.005, Kept;
    /// Lambda accepts an `Invoke` call, but the response is lost. The rate is per call.
    InvokeAnswerLost = "invoke_answer_lost", 0.005, Kept;
    /// The handler crashes before its first call for a batch. The rate is per batch.
    HandlerDiedBefore = "handler_died_before", 0.005, Full;
    /// The handler crashes after some of its calls for a batch. The rate is per batch. The fault strikes only batches
    /// with more than one call.
    HandlerDiedBetween = "handler_died_between", 0.02, Full;
    /// The handler crashes after all of its calls for a batch, but before it responds. The rate is per batch.
    HandlerDiedAfter = "handler_died_after", 0.005, Full;
    /// The handler is slow: it makes some of its calls for a batch, and is then stopped by its timeout. The rate is per
    /// batch.
    HandlerTimedOut = "handler_timed_out", 0.005, Full;
    /// SQS refuses a whole `SendMessageBatch` call to the dead-letter queue. The rate is per call.
    DeadLetterRefused = "dead_letter_refused", 0.3, Kept;
    /// SQS executes a `SendMessageBatch` call to the dead-letter queue, but the response is lost. The rate is per call.
    DeadLetterLost = "dead_letter_lost", 0.3, Kept;
    /// Lambda throttles the poller. The messages of a batch were received, but the handler never sees them. The rate is
    /// per batch.
    PollerThrottled = "poller_throttled", 0.01, Exceeded;
    /// While the handler processes a batch, its clock is up to 5 s ahead of or behind SQS's clock. The rate is per
    /// batch.
    ClockSkew = "clock_skew", 0.2, Exceeded;
    /// The handler fails before its first call for a batch. The rate is per batch; a rate of 1 within a window amounts
    /// to an outage of the handler.
    HandlerOutage = "handler_outage", 0.0, Full;
    /// SQS returns no messages to a poll, as it does at the in-flight limit. The rate is per poll.
    InFlightLimit = "in_flight_limit", 0.0, Full;
    /// A message that is passed to the handler lacks a field that SQS always writes. The rate is per message.
    IncompleteMessage = "incomplete_message", 0.005, Exceeded;
    /// An invocation record lacks a member, possibly a required one. The rate is per record.
    IncompleteRecord = "incomplete_record", 0.01, Kept;
    /// The error in an invocation record is a `RetryAfter` with an absurd message, such as a number with 900,000
    /// digits. The rate is per record that no other fault has changed.
    HostileMessage = "hostile_message", 0.005, Exceeded;
    /// An invocation record names a function that is not in `TARGET_FUNCTIONS`. The policy must not allow this
    /// function. The rate is per record.
    UnlistedFunction = "unlisted_function", 0.005, Kept;
    /// SQS refuses a `SendMessageBatch` call to the retry queue with a permanent error, so the call moves no messages.
    /// The rate is per call.
    MoveRefused = "move_refused", 0.02, Exceeded;
    /// SQS throttles a `SendMessageBatch` call to the retry queue. The rate is per call.
    MoveThrottled = "move_throttled", 0.1, Exceeded;
    /// SQS executes a `SendMessageBatch` call to the retry queue, but the response is lost. The rate is per call.
    MoveLost = "move_lost", 0.03, Exceeded;
    /// The handler crashes right after it has moved messages from a batch. The rate is per batch. The fault strikes
    /// only batches from which messages are moved.
    HandlerDiedAfterMove = "handler_died_after_move", 0.01, Full;
    /// The event source mapping's `DeleteMessageBatch` call for a batch has no effect. The rate is per batch.
    DeleteLost = "delete_lost", 0.005, Full;
    /// A count of the messages in flight fails. The rate is per count.
    CountFailed = "count_failed", 0.2, Kept;
    /// A count of the messages in flight is ten minutes old, instead of at most one minute. The rate is per count.
    CountStale = "count_stale", 0.2, Full;
    /// When a message is moved, the copy's message attribute is cut in half, so the copy counts as a new message. The
    /// rate is per moved message whose record has a timestamp and a request id.
    AttributeGarbled = "attribute_garbled", 0.005, Kept;
    /// The copy of a moved message has no message attribute, so it counts as a new message. The rate is per moved
    /// message whose record has a timestamp and a request id.
    AttributeStripped = "attribute_stripped", 0.005, Kept;
    /// A read of the pauses is denied. The rate is per read.
    PausesDenied = "pauses_denied", 0.05, Kept;
    /// A read of the pauses is throttled. The rate is per read.
    PausesThrottled = "pauses_throttled", 0.05, Kept;
    /// The response to a read of the pauses comes too late. The rate is per read.
    PausesLate = "pauses_late", 0.05, Kept;
    /// The value of the pauses parameter is unreadable. The rate is per read of a parameter that has a value.
    PausesGarbled = "pauses_garbled", 0.05, Kept;
    /// A read of the pauses returns the value that the parameter had ten minutes earlier. The rate is per read.
    PausesStale = "pauses_stale", 0.05, Kept;
    /// A sent message reaches the end of its retention period within 12 hours, and its event counts as `expired`. The
    /// rate is per message sent. Not part of [`Faults::chaos`](crate::Faults::chaos), because no handler could prevent
    /// this loss.
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
