//! Checks the invariants of every run: the world reports each step to the [`Oracle`](oracle::Oracle), and each of the
//! handler's reports to the [`LogCheck`](log::LogCheck). Both apply the functions in `invariants`.
//!
//! The oracle does its own arithmetic, in `handling`. It shares only one computation with the engine: the ceiling of a
//! backoff.

pub(crate) mod handling;
pub(crate) mod history;
mod invariants;
pub(crate) mod ledger;
pub(crate) mod log;
mod lookup;
pub(crate) mod oracle;
mod parameter;
pub(crate) mod pauses;

use std::time::Duration;

use crate::event::EventNumber;

/// The queue's visibility timeout, for a message that the handler does not hide.
const UNHIDDEN: Duration = Duration::from_secs(1_230);
/// Longest visibility timeout that the handler sets for a message whose function is paused.
const HOLD: Duration = Duration::from_secs(1_344);
/// Unit of visibility timeouts. Waits are rounded up to whole seconds.
const SECOND: Duration = Duration::from_secs(1);

texts! {
    /// A rule that must hold in every run, whatever faults strike.
    pub enum Invariant;
    /// Returns the rule as text.
    pub fn statement;

    NoneVanishes = "every event ends delivered, dead-lettered with a reason, or still waiting",
    TrueReasons = "a dead-letter's reason is true",
    MaxRetries = "a chain has at most MAX_RETRIES retries",
    MaxAge = "no re-invocation after MAX_AGE",
    LongestWait = "no backoff exceeds its ceiling, no requested wait exceeds the request by over a tenth, no single hiding exceeds 12 hours",
    DueTime = "no re-invocation before its due time",
    AttemptsByOne = "attempt numbers of a chain rise by one",
    PayloadVerbatim = "a payload is byte-identical from first failure to end",
    AllowList = "a function off the list is never invoked",
    ExplainedDuplicates = "duplicates happen only where a fault explains them",
    SpacedInvokes = "an invoke that Lambda may have accepted is not repeated within the hour, except as the last \
                     retry before MAX_AGE ends, or after 1,230 s if its message could not be hidden",
    LeavesForAReason = "a message leaves the queue re-invoked, dead-lettered or with an accepted copy",
    HopsEndInTime = "no hop ends more than a second after the due time",
    FewestHops = "a wait takes at most one hop for each 900 s begun",
    BoundedInFlight = "messages in flight are at most twice HIDE_UP_TO, plus a batch for each poller",
    NoStall = "nothing stays visible while a poller is free",
    NoneExpires = "the handler dead-letters every message it sees before SQS would delete it",
    FewReceives = "no message reaches 1,000 receives while the handler runs",
    PausedNotInvoked = "no function is invoked by a handler that knows it to be paused",
    PauseEndsNothing = "no event is dead-lettered as too old because of a pause that is recorded",
    CancelledNotInvoked = "no event is invoked by a handler that knows it to be cancelled",
    RecallsShorten = "a recall ends no hiding made before a call that Lambda may have accepted, and makes none longer",
    KeptEdits = "a write of the pauses parameter is readable, and loses only what has ended or has no room",
    LastingRequests = "a request lasts until the handler has checked every message that it covers",
    WorkingCommands = "an operator's command fails only because of a fault or another operator",
    TrueLog = "the handler's log says of each message whether it waits, and for what",
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) invariant: Invariant,
    /// The event that broke the invariant; `None` if no single event did.
    pub(crate) event: Option<EventNumber>,
    pub(crate) detail: String,
}

impl Invariant {
    fn check(
        self,
        event: impl Into<Option<EventNumber>>,
        holds: bool,
        detail: impl FnOnce() -> String,
    ) -> Result<(), Broken> {
        if holds { Ok(()) } else { Err(self.broken(event, detail())) }
    }

    fn broken(self, event: impl Into<Option<EventNumber>>, detail: String) -> Broken {
        Broken { invariant: self, event: event.into(), detail }
    }
}
