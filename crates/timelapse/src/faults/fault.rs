//! The faults that a run can inject.

use std::fmt;
use std::str::FromStr;

/// What a fault makes of the handler's room for hidden messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// It neither keeps messages in flight that the handler does not know of, nor keeps it from moving them, nor makes
    /// its counts or its clock wrong.
    Kept,
    Exceeded,
    /// It may fill the queue to its limit: by itself, by making counts old, or by leaving messages and their copies
    /// behind again and again.
    Full,
}

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $fault:ident = $name:literal, $rate:literal, $room:ident;)*) => {
        /// Something that goes wrong on AWS. Each variant says what its rate is a share *of*.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[doc = $doc])* $fault,)*
        }

        impl Fault {
            /// Every fault, in the order of the documentation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$fault),*];

            /// Its name in flags and in JSON. It also seeds the fault's dice.
            pub const fn name(self) -> &'static str {
                self.row().0
            }

            /// Its name, its rate through the whole of a run with chaos (0 if it does not strike that way), and what it
            /// makes of the room.
            pub(crate) const fn row(self) -> (&'static str, f64, Room) {
                match self {
                    $(Self::$fault => ($name, $rate, Room::$room),)*
                }
            }
        }
    };
}

// The rates of chaos are high enough for each fault to strike dozens of times in a run of 2,000 events, and low enough
// for most events to be delivered. Deliveries repeat a refused call up to three times, so the rates of these are high,
// as are those of calls that are rare: counts, dead-letters, reads of pauses.
faults! {
    /// Of the messages received: SQS hands it out again while it is hidden, in the same batch or within the hour.
    DuplicateDelivery = "duplicate_delivery", 0.01, Exceeded;
    /// Of the messages received: the handler gets an old receipt handle, which deletes nothing, so the message comes back when
    /// its hiding ends.
    StaleReceiptHandle = "stale_receipt_handle", 0.005, Exceeded;
    /// Of the messages received: `ApproximateReceiveCount` is one too high.
    ReceiveCountHigh = "receive_count_high", 0.01, Kept;
    /// Of the messages received: `ApproximateReceiveCount` is one too low.
    ReceiveCountLow = "receive_count_low", 0.01, Kept;
    /// Of the `ChangeMessageVisibilityBatch` calls: refused whole.
    VisibilityRefused = "visibility_refused", 0.15, Full;
    /// Of the `ChangeMessageVisibilityBatch` calls: done, but the answer is lost.
    VisibilityLost = "visibility_lost", 0.05, Full;
    /// Of the `ChangeMessageVisibilityBatch` calls: about half of the entries are refused.
    VisibilityHalfRefused = "visibility_half_refused", 0.15, Full;
    /// Of the `Invoke` calls: throttled.
    InvokeThrottled = "invoke_throttled", 0.01, Kept;
    /// Of the `Invoke` calls: it never reaches Lambda, and no answer comes.
    InvokeTimedOut = "invoke_timed_out", 0.005, Kept;
    /// Of the `Invoke` calls: accepted, but the answer is lost.
    InvokeAnswerLost = "invoke_answer_lost", 0.005, Kept;
    /// Of the batches: the handler dies before its first call.
    HandlerDiedBefore = "handler_died_before", 0.005, Full;
    /// Of the batches: the handler dies with some of its calls made. Strikes only batches with more than one.
    HandlerDiedBetween = "handler_died_between", 0.02, Full;
    /// Of the batches: the handler dies with all of its calls made and nothing answered.
    HandlerDiedAfter = "handler_died_after", 0.005, Full;
    /// Of the batches: the handler is slow, makes some calls and is stopped by its timeout.
    HandlerTimedOut = "handler_timed_out", 0.005, Full;
    /// Of the `SendMessageBatch` calls to the dead-letter queue: refused whole.
    DeadLetterRefused = "dead_letter_refused", 0.3, Kept;
    /// Of the `SendMessageBatch` calls to the dead-letter queue: done, but the answer is lost.
    DeadLetterLost = "dead_letter_lost", 0.3, Kept;
    /// Of the batches: Lambda throttles the poller. The messages were received, and the handler never sees them.
    PollerThrottled = "poller_throttled", 0.01, Exceeded;
    /// Of the batches: the handler's clock is up to 5 s ahead of SQS's or behind it.
    ClockSkew = "clock_skew", 0.2, Exceeded;
    /// Of the batches: the handler fails before its first call. Within a window this is an outage.
    HandlerOutage = "handler_outage", 0.0, Full;
    /// Of the polls: nothing is handed out, as at the in-flight limit.
    InFlightLimit = "in_flight_limit", 0.0, Full;
    /// Of the messages handed to the handler: a field that SQS always writes is missing.
    IncompleteMessage = "incomplete_message", 0.005, Exceeded;
    /// Of the invocation records: a member is missing, required or not.
    IncompleteRecord = "incomplete_record", 0.01, Kept;
    /// Of the invocation records that are otherwise whole: its error is a `RetryAfter` whose message nobody would
    /// write.
    HostileMessage = "hostile_message", 0.005, Exceeded;
    /// Of the invocation records: it names a function off `TARGET_FUNCTIONS`, which the policy must not allow.
    UnlistedFunction = "unlisted_function", 0.005, Kept;
    /// Of the `SendMessageBatch` calls to the retry queue, which move messages: refused for good.
    MoveRefused = "move_refused", 0.02, Exceeded;
    /// Of the `SendMessageBatch` calls to the retry queue: throttled.
    MoveThrottled = "move_throttled", 0.1, Exceeded;
    /// Of the `SendMessageBatch` calls to the retry queue: done, but the answer is lost.
    MoveLost = "move_lost", 0.03, Exceeded;
    /// Of the batches: the handler dies once it has moved messages. Strikes only batches with moves.
    HandlerDiedAfterMove = "handler_died_after_move", 0.01, Full;
    /// Of the batches: the event source mapping's `DeleteMessageBatch` does nothing.
    DeleteLost = "delete_lost", 0.005, Full;
    /// Of the counts of the queue: no count comes.
    CountFailed = "count_failed", 0.2, Kept;
    /// Of the counts of the queue: the count is ten minutes old, instead of a minute at most.
    CountStale = "count_stale", 0.2, Full;
    /// Of the messages moved whose record says when it was written: the copy's attribute is cut, so that it counts as
    /// new.
    AttributeGarbled = "attribute_garbled", 0.005, Kept;
    /// Of the messages moved whose record says when it was written: the copy, without its attribute, counts as new.
    AttributeStripped = "attribute_stripped", 0.005, Kept;
    /// Of the reads of the pauses: denied.
    PausesDenied = "pauses_denied", 0.05, Kept;
    /// Of the reads of the pauses: throttled.
    PausesThrottled = "pauses_throttled", 0.05, Kept;
    /// Of the reads of the pauses: the answer comes too late.
    PausesLate = "pauses_late", 0.05, Kept;
    /// Of the reads of the pauses that find any: the text is unreadable.
    PausesGarbled = "pauses_garbled", 0.05, Kept;
    /// Of the reads of the pauses: the answer is ten minutes old.
    PausesStale = "pauses_stale", 0.05, Kept;
    /// Of the messages sent: its retention ends within 12 hours. Such events count as `expired`. Not part of
    /// [`Faults::chaos`](crate::Faults::chaos), because no handler could prevent it.
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
