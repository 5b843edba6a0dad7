//! What must hold of every run, whatever strikes. It is checked as the run goes.

use crate::event::EventNumber;

/// Something that must hold of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// An event counts once: delivered if any copy was, else waiting while an invocation or a
    /// message carries it, else dead-lettered.
    NoneVanishes,
    /// An event that is dead-lettered for a limit has reached that limit.
    TrueReasons,
    /// A failed event and its retries are a chain; a duplicate starts a chain of its own.
    MaxRetries,
    /// By the handler's own clock when it started on the batch, and from the event's true first failure.
    MaxAge,
    /// A wait counts from the first receive; on the first receive, by the count that the handler sees,
    /// it counts from now. A wait that the target asked for ends a tenth of it later at most, and leaves time for a last
    /// retry. A message whose action failed is hidden for at most
    /// min(3,600 s, 2^receive count), and for at most two hours if its re-invocation was not answered.
    LongestWait,
    /// The due time comes after the shortest wait that the jitter can draw, counted from the first
    /// receive, or at the moment that the target asked for, and after every visibility timeout that the handler has set. By the handler's own clock.
    DueTime,
    /// A message's retry has the number of the attempt that failed, plus one.
    AttemptsByOne,
    /// From the first failure to the re-invocation or the dead-letter.
    PayloadVerbatim,
    /// No matter what a record says.
    AllowList,
    /// A message is re-invoked or dead-lettered once. It may be once more for each fault that prevented
    /// SQS from deleting it, or the handler from learning that its call had worked.
    ExplainedDuplicates,
    /// Unless SQS hands the message out while it is hidden. The hour is cut where it would leave no time
    /// for a last retry before `MAX_AGE`; where the hiding failed, it is 1,230 s too.
    SpacedInvokes,
    /// SQS deletes a message that the handler did not report failed. By then the message was re-invoked or
    /// dead-lettered, or a copy of it was accepted.
    LeavesForAReason,
    /// By the due time of the handler's own log, from the moment at which it started on the batch.
    HopsEndInTime,
    /// Counted over all the waits of a message and its copies; a look that comes early, or another wait,
    /// explains one more.
    FewestHops,
    /// 2 × `HIDE_UP_TO` and a batch for each poller. With counts at most a minute old, and no fault that
    /// keeps messages in flight unknown to the handler.
    BoundedInFlight,
    /// With `HIDE_UP_TO` a number whose bound the queue's limit has room for, and no fault that fills the queue:
    /// old counts, and handlers that die again and again.
    NoStall,
    /// Unless no handler that lived, and had time for its calls, has seen it in the twelve hours before, or SQS
    /// has ended its retention early.
    NoneExpires,
    /// By what its environment has last read, at the moment at which it started on the batch; and it tries to
    /// read again after max(30 s, 0.3 s for each environment) and a quarter. A handler that has never read
    /// anything invokes nothing. A handler that is older than pauses may.
    PausedNotInvoked,
    /// Neither the time of a pause that its handler knows of counts, nor the hold after it. SQS's own 14 days do.
    PauseEndsNothing,
}

impl Invariant {
    /// Every invariant, in the order of the documentation.
    pub const ALL: [Self; 19] = [
        Self::NoneVanishes,
        Self::TrueReasons,
        Self::MaxRetries,
        Self::MaxAge,
        Self::LongestWait,
        Self::DueTime,
        Self::AttemptsByOne,
        Self::PayloadVerbatim,
        Self::AllowList,
        Self::ExplainedDuplicates,
        Self::SpacedInvokes,
        Self::LeavesForAReason,
        Self::HopsEndInTime,
        Self::FewestHops,
        Self::BoundedInFlight,
        Self::NoStall,
        Self::NoneExpires,
        Self::PausedNotInvoked,
        Self::PauseEndsNothing,
    ];

    /// What must hold, in one clause.
    pub const fn statement(self) -> &'static str {
        match self {
            Self::NoneVanishes => "every event ends delivered, dead-lettered with a reason, or still waiting",
            Self::TrueReasons => "a dead-letter's reason is true",
            Self::MaxRetries => "retries of one chain are at most MAX_RETRIES",
            Self::MaxAge => "no re-invocation after MAX_AGE",
            Self::LongestWait => "no wait over its ceiling, or what its function asked for, or 12 hours",
            Self::DueTime => "no re-invocation before its due time",
            Self::AttemptsByOne => "attempt numbers of a chain rise by one",
            Self::PayloadVerbatim => "a payload is byte-identical from first failure to end",
            Self::AllowList => "a function off the list is never invoked",
            Self::ExplainedDuplicates => "duplicates happen only where a fault explains them",
            Self::SpacedInvokes => {
                "an invoke that was not refused is repeated after an hour at the earliest, or after 1,230 s \
                 if the handler died"
            }
            Self::LeavesForAReason => {
                "a message leaves the queue re-invoked, dead-lettered or with an accepted copy"
            }
            Self::HopsEndInTime => "no hop ends more than a second after the due time",
            Self::FewestHops => "a wait takes no more hops than its length in delays of 900 s, rounded up",
            Self::BoundedInFlight => "messages in flight stay under twice HIDE_UP_TO and a batch a poller",
            Self::NoStall => "nothing stays visible while a poller is free",
            Self::NoneExpires => "no message that the handler sees is kept past its retention",
            Self::PausedNotInvoked => "no function is invoked by a handler that knows it to be paused",
            Self::PauseEndsNothing => "no event is too old because of a pause",
        }
    }
}

/// How an invariant was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) invariant: Invariant,
    /// `None` if no event can be named.
    pub(crate) event: Option<EventNumber>,
    pub(crate) detail: String,
}

impl Broken {
    pub(crate) fn new(
        invariant: Invariant,
        event: impl Into<Option<EventNumber>>,
        detail: impl Into<String>,
    ) -> Self {
        Self { invariant, event: event.into(), detail: detail.into() }
    }
}
