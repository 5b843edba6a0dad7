//! The faults that a run can inject.

use std::fmt;
use std::str::FromStr;

/// A fault's effect on the handler's room for hidden messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// It neither keeps messages in flight unknown to the handler, nor prevents moves, nor distorts the handler's
    /// counts or clock.
    Kept,
    Exceeded,
    /// It may fill the queue to its limit: directly, by making counts old, or by leaving messages and their copies
    /// behind again and again.
    Full,
}

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $fault:ident = $name:literal, $rate:literal, $room:ident;)*) => {
        /// Something that goes wrong on AWS. Each variant says what its rate applies to: messages, calls or batches.
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

            /// Its name, its rate throughout a run with chaos (0 if it does not strike that way), and its effect on the
            /// room.
            pub(crate) const fn row(self) -> (&'static str, f64, Room) {
                match self {
                    $(Self::$fault => ($name, $rate, Room::$room),)*
                }
            }
        }
    };
}

// The rates of chaos are high enough for each fault to strike dozens of times in a run of 2,000 events, and low enough
// for most events to be delivered. Deliveries repeat a refused call up to three times, so refusals have high rates, and
// so do faults of rare calls: counts, dead-letters, reads of pauses.
faults! {
    /// Per message received: SQS hands it out again while it is hidden, in the same batch or within the hour.
    DuplicateDelivery = "duplicate_delivery", 0.01, Exceeded;
    /// Per message received: the handler gets an old receipt handle, which deletes nothing, so the message comes back
    /// when its hiding ends.
    StaleReceiptHandle = "stale_receipt_handle", 0.005, Exceeded;
    /// Per message received: `ApproximateReceiveCount` is one too high.
    ReceiveCountHigh = "receive_count_high", 0.01, Kept;
    /// Per message received: `ApproximateReceiveCount` is one too low.
    ReceiveCountLow = "receive_count_low", 0.01, Kept;
    /// Per `ChangeMessageVisibilityBatch` call: refused entirely.
    VisibilityRefused = "visibility_refused", 0.15, Full;
    /// Per `ChangeMessageVisibilityBatch` call: done, but the answer is lost.
    VisibilityLost = "visibility_lost", 0.05, Full;
    /// Per `ChangeMessageVisibilityBatch` call: about half of the entries are refused.
    VisibilityHalfRefused = "visibility_half_refused", 0.15, Full;
    /// Per `Invoke` call: throttled.
    InvokeThrottled = "invoke_throttled", 0.01, Kept;
    /// Per `Invoke` call: it never reaches Lambda, and no answer comes.
    InvokeTimedOut = "invoke_timed_out", 0.005, Kept;
    /// Per `Invoke` call: accepted, but the answer is lost.
    InvokeAnswerLost = "invoke_answer_lost", 0.005, Kept;
    /// Per batch: the handler dies before its first call.
    HandlerDiedBefore = "handler_died_before", 0.005, Full;
    /// Per batch: the handler dies after some of its calls. Strikes only batches with more than one.
    HandlerDiedBetween = "handler_died_between", 0.02, Full;
    /// Per batch: the handler dies after all of its calls, before it answers.
    HandlerDiedAfter = "handler_died_after", 0.005, Full;
    /// Per batch: the handler is slow, makes some calls and is stopped by its timeout.
    HandlerTimedOut = "handler_timed_out", 0.005, Full;
    /// Per `SendMessageBatch` call to the dead-letter queue: refused entirely.
    DeadLetterRefused = "dead_letter_refused", 0.3, Kept;
    /// Per `SendMessageBatch` call to the dead-letter queue: done, but the answer is lost.
    DeadLetterLost = "dead_letter_lost", 0.3, Kept;
    /// Per batch: Lambda throttles the poller. The messages were received, and the handler never sees them.
    PollerThrottled = "poller_throttled", 0.01, Exceeded;
    /// Per batch: the handler's clock is up to 5 s ahead of SQS's or behind it.
    ClockSkew = "clock_skew", 0.2, Exceeded;
    /// Per batch: the handler fails before its first call. Within a window this is an outage.
    HandlerOutage = "handler_outage", 0.0, Full;
    /// Per poll: SQS returns nothing, as at the in-flight limit.
    InFlightLimit = "in_flight_limit", 0.0, Full;
    /// Per message passed to the handler: a field that SQS always writes is missing.
    IncompleteMessage = "incomplete_message", 0.005, Exceeded;
    /// Per invocation record: a member is missing, required or not.
    IncompleteRecord = "incomplete_record", 0.01, Kept;
    /// Per invocation record that is otherwise intact: its error is a `RetryAfter` with a message nobody would write.
    HostileMessage = "hostile_message", 0.005, Exceeded;
    /// Per invocation record: it names a function off `TARGET_FUNCTIONS`, which the policy must not allow.
    UnlistedFunction = "unlisted_function", 0.005, Kept;
    /// Per `SendMessageBatch` call to the retry queue, which moves messages: refused permanently.
    MoveRefused = "move_refused", 0.02, Exceeded;
    /// Per `SendMessageBatch` call to the retry queue: throttled.
    MoveThrottled = "move_throttled", 0.1, Exceeded;
    /// Per `SendMessageBatch` call to the retry queue: done, but the answer is lost.
    MoveLost = "move_lost", 0.03, Exceeded;
    /// Per batch: the handler dies once it has moved messages. Strikes only batches with moves.
    HandlerDiedAfterMove = "handler_died_after_move", 0.01, Full;
    /// Per batch: the event source mapping's `DeleteMessageBatch` does nothing.
    DeleteLost = "delete_lost", 0.005, Full;
    /// Per count of the queue: no count comes.
    CountFailed = "count_failed", 0.2, Kept;
    /// Per count of the queue: the count is ten minutes old, instead of a minute at most.
    CountStale = "count_stale", 0.2, Full;
    /// Per message moved whose record has the time it was written: the copy's attribute is cut, so that it counts as
    /// new.
    AttributeGarbled = "attribute_garbled", 0.005, Kept;
    /// Per message moved whose record has the time it was written: the copy, without its attribute, counts as new.
    AttributeStripped = "attribute_stripped", 0.005, Kept;
    /// Per read of the pauses: denied.
    PausesDenied = "pauses_denied", 0.05, Kept;
    /// Per read of the pauses: throttled.
    PausesThrottled = "pauses_throttled", 0.05, Kept;
    /// Per read of the pauses: the answer comes too late.
    PausesLate = "pauses_late", 0.05, Kept;
    /// Per read of the pauses that finds any: the text is unreadable.
    PausesGarbled = "pauses_garbled", 0.05, Kept;
    /// Per read of the pauses: the answer is ten minutes old.
    PausesStale = "pauses_stale", 0.05, Kept;
    /// Per message sent: its retention ends within 12 hours. These events count as `expired`. Not part of
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
