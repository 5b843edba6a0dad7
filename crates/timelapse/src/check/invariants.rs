//! What must hold of every run, whatever strikes. Checked as the run goes, from what the simulated
//! world sees: calls, messages and the scenario, never what the handler says of itself.

/// Something that must hold of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// An event counts once: delivered if any copy was, else waiting while an invocation or a
    /// message carries it, else dead-lettered.
    NoneVanishes,
    /// Whatever is dead-lettered for a limit has reached it.
    TrueReasons,
    /// Retries of one chain.
    MaxRetries,
    /// By the handler's own clock, and from the event's true first failure.
    MaxAge,
    /// From the first receive, or from now where the handler is told that this is the first. An
    /// event whose action did not work is hidden for at most min(3,600 s, 2^receive count).
    LongestWait,
    /// Neither before the shortest wait its jitter can draw has passed since the first receive, nor
    /// before the time the handler itself had it hidden for. By the handler's own clock.
    DueTime,
    /// Each message's retry has the number of the invocation that failed, and one more.
    AttemptsByOne,
    /// From the first failure to the re-invocation or the dead-letter.
    PayloadVerbatim,
    /// Whatever a record says.
    AllowList,
    /// A message is re-invoked or dead-lettered once, and once more for each fault that has kept
    /// SQS from deleting it, or the handler from learning that it worked.
    ExplainedDuplicates,
}

impl Invariant {
    /// Every invariant, in the order of the documentation.
    pub const ALL: [Self; 10] = [
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
    ];

    /// What must hold, in one clause.
    pub const fn statement(self) -> &'static str {
        match self {
            Self::NoneVanishes => "every event ends delivered, dead-lettered with a reason, or still waiting",
            Self::TrueReasons => "a dead-letter's reason is true",
            Self::MaxRetries => "retries of one chain are at most MAX_RETRIES",
            Self::MaxAge => "no re-invocation after MAX_AGE",
            Self::LongestWait => "no wait over its ceiling or 12 hours",
            Self::DueTime => "no re-invocation before its due time",
            Self::AttemptsByOne => "attempt numbers of a chain rise by one",
            Self::PayloadVerbatim => "a payload is byte-identical from first failure to end",
            Self::AllowList => "a function off the list is never invoked",
            Self::ExplainedDuplicates => "duplicates happen only where a fault explains them",
        }
    }
}

/// How an invariant was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) invariant: Invariant,
    /// `None` if what was found is of no event.
    pub(crate) event: Option<usize>,
    pub(crate) detail: String,
}

impl Broken {
    pub(crate) fn new(
        invariant: Invariant,
        event: impl Into<Option<usize>>,
        detail: impl Into<String>,
    ) -> Self {
        Self { invariant, event: event.into(), detail: detail.into() }
    }
}
