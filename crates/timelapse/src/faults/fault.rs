//! The faults that can be injected into a run.

use std::fmt;
use std::str::FromStr;

/// Effect of a fault on the number of messages in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// The handler's limit holds. The fault does not keep messages in flight without the handler's knowledge, prevent
    /// moves, or distort the handler's counts or clock.
    Kept,
    Exceeded,
    /// The fault may fill the queue to its in-flight limit: directly, through outdated counts, or through the messages
    /// that repeated strikes leave behind.
    Full,
}

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $fault:ident = $name:literal, $rate:literal, $room:ident;)*) => {
        texts! {
            /// A kind of AWS failure to inject. Each variant says what its rate applies to.
            pub enum Fault;
            /// Name of the fault in command-line flags and in JSON. The name also seeds the fault's random generator.
            pub fn name;

            $($(#[doc = $doc])* $fault = $name,)*
        }

        impl Fault {
            /// Returns the fault's rate in a run with chaos, and its effect on the number of messages in flight. The
            /// rate is 0 if the fault strikes only in a window or not at all.
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
    /// Per message received: SQS delivers the hidden message again, in the same batch or within the hour.
    DuplicateDelivery = "duplicate_delivery", 0.01, Exceeded;
    /// Per message received: the handler gets an old receipt handle, which no longer deletes the message. The message
    /// comes back when its visibility timeout ends.
    StaleReceiptHandle = "stale_receipt_handle", 0.005, Exceeded;
    /// Per message received: `ApproximateReceiveCount` is one too high.
    ReceiveCountHigh = "receive_count_high", 0.01, Kept;
    /// Per message received: `ApproximateReceiveCount` is one too low.
    ReceiveCountLow = "receive_count_low", 0.01, Kept;
    /// Per `ChangeMessageVisibilityBatch` call: SQS refuses the whole call.
    VisibilityRefused = "visibility_refused", 0.15, Full;
    /// Per `ChangeMessageVisibilityBatch` call: SQS executes the call, but the answer is lost.
    VisibilityLost = "visibility_lost", 0.05, Full;
    /// Per `ChangeMessageVisibilityBatch` call: SQS refuses about half of the entries.
    VisibilityHalfRefused = "visibility_half_refused", 0.15, Full;
    /// Per `Invoke` call: Lambda throttles the call.
    InvokeThrottled = "invoke_throttled", 0.01, Kept;
    /// Per `Invoke` call: the call never reaches Lambda, and no answer comes.
    InvokeTimedOut = "invoke_timed_out", 0.005, Kept;
    /// Per `Invoke` call: Lambda accepts the call, but the answer is lost.
    InvokeAnswerLost = "invoke_answer_lost", 0.005, Kept;
    /// Per batch: the handler crashes before its first call.
    HandlerDiedBefore = "handler_died_before", 0.005, Full;
    /// Per batch: the handler crashes after some of its calls. Strikes only batches with more than one call.
    HandlerDiedBetween = "handler_died_between", 0.02, Full;
    /// Per batch: the handler crashes after all of its calls, but before it responds.
    HandlerDiedAfter = "handler_died_after", 0.005, Full;
    /// Per batch: the handler is slow, makes some calls, and is stopped by its timeout.
    HandlerTimedOut = "handler_timed_out", 0.005, Full;
    /// Per `SendMessageBatch` call to the dead-letter queue: SQS refuses the whole call.
    DeadLetterRefused = "dead_letter_refused", 0.3, Kept;
    /// Per `SendMessageBatch` call to the dead-letter queue: SQS executes the call, but the answer is lost.
    DeadLetterLost = "dead_letter_lost", 0.3, Kept;
    /// Per batch: Lambda throttles the poller. The messages were received, but the handler never sees them.
    PollerThrottled = "poller_throttled", 0.01, Exceeded;
    /// Per batch: the handler's clock is up to 5 s ahead of or behind SQS's clock.
    ClockSkew = "clock_skew", 0.2, Exceeded;
    /// Per batch: the handler fails before its first call. A rate of 1 within a window amounts to an outage of the
    /// handler.
    HandlerOutage = "handler_outage", 0.0, Full;
    /// Per poll: SQS returns nothing, as it does at the in-flight limit.
    InFlightLimit = "in_flight_limit", 0.0, Full;
    /// Per message passed to the handler: a field that SQS always writes is missing.
    IncompleteMessage = "incomplete_message", 0.005, Exceeded;
    /// Per invocation record: a member is missing, possibly a required one.
    IncompleteRecord = "incomplete_record", 0.01, Kept;
    /// Per invocation record that is otherwise intact: the error is a `RetryAfter` with an absurd message, such as a
    /// number with 900,000 digits.
    HostileMessage = "hostile_message", 0.005, Exceeded;
    /// Per invocation record: the record names a function that is not in `TARGET_FUNCTIONS`. The policy must not allow
    /// this function.
    UnlistedFunction = "unlisted_function", 0.005, Kept;
    /// Per `SendMessageBatch` call to the retry queue (a move of messages): SQS refuses the call permanently.
    MoveRefused = "move_refused", 0.02, Exceeded;
    /// Per `SendMessageBatch` call to the retry queue: SQS throttles the call.
    MoveThrottled = "move_throttled", 0.1, Exceeded;
    /// Per `SendMessageBatch` call to the retry queue: SQS executes the call, but the answer is lost.
    MoveLost = "move_lost", 0.03, Exceeded;
    /// Per batch: the handler crashes as soon as it has moved messages. Strikes only batches with moves.
    HandlerDiedAfterMove = "handler_died_after_move", 0.01, Full;
    /// Per batch: the event source mapping's `DeleteMessageBatch` has no effect.
    DeleteLost = "delete_lost", 0.005, Full;
    /// Per count of the messages in flight: the count fails.
    CountFailed = "count_failed", 0.2, Kept;
    /// Per count of the messages in flight: the count is ten minutes old, instead of at most one minute.
    CountStale = "count_stale", 0.2, Full;
    /// Per message moved, if its record has a timestamp and a request id: the copy's message attribute is cut in half,
    /// so the copy counts as a new message.
    AttributeGarbled = "attribute_garbled", 0.005, Kept;
    /// Per message moved, if its record has a timestamp and a request id: the copy loses its message attribute, so the
    /// copy counts as a new message.
    AttributeStripped = "attribute_stripped", 0.005, Kept;
    /// Per read of the pauses: access is denied.
    PausesDenied = "pauses_denied", 0.05, Kept;
    /// Per read of the pauses: the read is throttled.
    PausesThrottled = "pauses_throttled", 0.05, Kept;
    /// Per read of the pauses: the answer comes too late.
    PausesLate = "pauses_late", 0.05, Kept;
    /// Per read of a pauses parameter that has a value: the value is unreadable.
    PausesGarbled = "pauses_garbled", 0.05, Kept;
    /// Per read of the pauses: the answer is ten minutes old.
    PausesStale = "pauses_stale", 0.05, Kept;
    /// Per message sent: the message's retention ends within 12 hours, and its event counts as `expired`. Not part of
    /// [`Faults::chaos`](crate::Faults::chaos), because no handler could prevent this loss.
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
