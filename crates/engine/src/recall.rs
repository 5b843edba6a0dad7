//! Recalls: making waiting messages visible early for an operator's request.
//!
//! Anyone who has a message's receipt handle can change how long SQS hides the message, and the handler logs the handle
//! of a message that stays hidden. On a standard queue, an old handle also changes the visibility timeout of a later
//! receive. Three rules keep recalls safe:
//!
//! - Only the newest log line about a message counts. If it has no handle, the message is not recalled.
//! - A message that becomes visible within a minute anyway is not recalled. A handler may already have received it
//!   again, and hidden it before making a call.
//! - After each log line, a message is recalled only once, for the earliest entry that applies to it. A handler may
//!   have received the recalled message and crashed after its call, and the message must then stay hidden.

use std::time::Duration;

use crate::log_fold::{MessageKind, WaitingMessage, WaitsFor};
use crate::outcome::{Cause, DueBy, NOT_RECALLED};
use crate::pauses::{Pause, Pauses};
use crate::policies::Policies;
use crate::requests::{Request, RequestKind};
use crate::time::Timestamp;
use crate::timing::longest_between_reads;

/// A hidden message that becomes visible within this time anyway is not recalled, i.e. not made visible early.
pub const RETURNS_SOON: Duration = Duration::from_secs(60);

/// A recall that would gain no more than this is skipped. The handler's and the operator's clocks may each be off by
/// 5 s, and calls take time too.
const LEAST_GAIN: Duration = Duration::from_secs(30);

/// An entry in the pauses document that makes waiting messages visible early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recall<'p> {
    /// A request to retry or cancel waiting events.
    Request(&'p Request),
    /// A pause that has ended.
    Resume(&'p Pause),
}

/// The reason why a message is not made visible early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotRecalled {
    /// The entry in the pauses document does not apply to the message's event.
    NotCovered,
    /// The function requested the wait with a `RetryAfter` error. Only a retry request that names the event's key can
    /// shorten it.
    RetryAfter,
    /// The event's next retry is the last that `MAX_RETRIES` allows.
    LastRetry,
    /// The event's function is paused.
    Paused,
    /// The event was held during a pause and becomes due within the pause's spread.
    Returning,
    /// Lambda may have accepted the event's last re-invocation, so the event must not be re-invoked again for about an
    /// hour.
    Unanswered,
    /// The message may already have been made visible early because of an earlier entry in the pauses document.
    Before,
    /// The message becomes visible soon anyway: within two minutes, or only a little later than its new due time.
    Soon,
    /// The message was moved (sent again with a delay), so it has no handle yet. It becomes visible within 15 minutes.
    Moved,
}

/// The current policies and pauses, which determine the messages to recall.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'p> {
    /// The handler's policies.
    pub policies: &'p Policies,
    /// The pauses document, including the entry that causes messages to be recalled.
    pub pauses: &'p Pauses,
}

impl Rules<'_> {
    fn entries(&self, now: Timestamp) -> impl Iterator<Item = Recall<'_>> {
        let over = self.pauses.iter().filter(move |pause| pause.is_over(now));
        let kinds = [RequestKind::Cancel, RequestKind::Retry].into_iter();
        let requests = kinds.flat_map(|kind| self.pauses.requests_to(kind));
        requests.map(Recall::Request).chain(over.map(Recall::Resume))
    }

    /// The longest time before a handler reads a new entry.
    fn noticed(&self) -> Duration {
        longest_between_reads(self.policies.stack().settings().maximum_concurrency)
    }

    fn is_paused(&self, target: &str, at: Timestamp) -> bool {
        self.pauses.of_function(target).any(|pause| pause.is_active(at))
    }
}

impl Recall<'_> {
    /// Returns the time at which the operator made the request, or at which the pause ended.
    pub fn at(self) -> Timestamp {
        match self {
            Self::Request(request) => request.at,
            Self::Resume(pause) => pause.until.unwrap_or(pause.from),
        }
    }

    /// Finds this entry in a document. Returns `None` if an operator has removed or withdrawn the entry.
    ///
    /// A pause is identified only by its target and its end, because it may have been merged with an earlier pause.
    pub fn find(self, pauses: &Pauses) -> Option<Recall<'_>> {
        match self {
            Self::Request(request) => pauses.requests().find(|it| *it == request).map(Recall::Request),
            Self::Resume(pause) => {
                let is_it = |it: &&Pause| it.target == pause.target && it.until == pause.until;
                pauses.iter().find(is_it).map(Recall::Resume)
            }
        }
    }

    /// Returns the time at which a message's retry becomes due because of this entry. The operator makes the message
    /// visible at that time.
    ///
    /// # Errors
    ///
    /// Fails with the reason why the message is not recalled.
    pub fn due(
        self,
        message: &WaitingMessage,
        kind: &MessageKind,
        rules: Rules<'_>,
        now: Timestamp,
    ) -> Result<Timestamp, NotRecalled> {
        let target = kind.target.as_deref().ok_or(NotRecalled::NotCovered)?;
        match self.covers(message, kind, rules) {
            Err(NotRecalled::NotCovered) => return Err(NotRecalled::NotCovered),
            _ if !self.is_cancel() && rules.is_paused(target, now) => return Err(NotRecalled::Paused),
            covers => covers?,
        }
        let returns = message.next_check();
        if returns <= now.saturating_add(RETURNS_SOON) {
            return Err(NotRecalled::Soon);
        }
        let Some(handle) = &message.handle else { return Err(without_handle(message)) };
        // Among entries with the same time, the first counts.
        let mut is_met = false;
        let mut earlier = rules.entries(now).filter(|entry| {
            is_met |= *entry == self;
            entry.at() < self.at() || entry.at() == self.at() && !is_met
        });
        if earlier.any(|entry| entry.covers(message, kind, rules).is_ok()) {
            return Err(NotRecalled::Before);
        }
        let due = self.drawn(&handle.message_id, message);
        if due.saturating_add(LEAST_GAIN) < returns { Ok(due) } else { Err(NotRecalled::Soon) }
    }

    /// Returns `Ok` if this request, or this end of a pause, applies to a message. It does not if the message was
    /// logged after every handler had read the entry, because the handler has then taken the entry into account.
    fn covers(
        self,
        message: &WaitingMessage,
        kind: &MessageKind,
        rules: Rules<'_>,
    ) -> Result<(), NotRecalled> {
        let target = kind.target.as_deref().ok_or(NotRecalled::NotCovered)?;
        if message.at >= self.at().saturating_add(rules.noticed()) {
            return Err(NotRecalled::NotCovered);
        }
        let is_covered = match self {
            Self::Request(request) => request.covers(target, kind.error_type.as_deref(), &message.key),
            Self::Resume(pause) => message.waits_for == WaitsFor::Resume && pause.target.covers(target),
        };
        if !is_covered {
            return Err(NotRecalled::NotCovered);
        }
        if let Self::Request(request) = self
            && request.kind == RequestKind::Retry
        {
            may_be_sooner(message, target, request, rules)?;
        }
        // If the function was paused at the entry's time, this entry did not recall the message, and a later entry may
        // recall it.
        let was_paused = !self.is_cancel() && rules.is_paused(target, self.at());
        if was_paused { Err(NotRecalled::Paused) } else { Ok(()) }
    }

    /// Returns true for a cancel request, which makes hidden messages visible early even while their function is
    /// paused.
    pub const fn is_cancel(self) -> bool {
        matches!(self, Self::Request(Request { kind: RequestKind::Cancel, .. }))
    }

    /// Returns the time at which a message's retry becomes due because of this entry, without checking whether the
    /// entry applies to the message. For a moved message, the handler draws a different time.
    pub fn drawn(self, message_id: &str, message: &WaitingMessage) -> Timestamp {
        let due = match self {
            Self::Request(request) => request.due_of(message_id, message.retry),
            Self::Resume(pause) => pause.returns_at(message_id, message.retry).unwrap_or(self.at()),
        };
        match message.waits_for {
            WaitsFor::Due { due: otherwise, .. } => due.min(otherwise),
            WaitsFor::Resume | WaitsFor::NextTry { .. } => due,
        }
    }
}

fn may_be_sooner(
    message: &WaitingMessage,
    target: &str,
    request: &Request,
    rules: Rules<'_>,
) -> Result<(), NotRecalled> {
    let most = rules.policies.of(target).settings().max_retries;
    match message.waits_for {
        WaitsFor::Due { by: DueBy::RetryAfter, .. } if !request.names_keys() => Err(NotRecalled::RetryAfter),
        WaitsFor::Due { by: DueBy::Pause, .. } | WaitsFor::Resume => Err(NotRecalled::Returning),
        _ if message.retry >= most => Err(NotRecalled::LastRetry),
        _ => Ok(()),
    }
}

/// The reason why the newest log line about a message has no handle.
fn without_handle(message: &WaitingMessage) -> NotRecalled {
    match message.waits_for {
        WaitsFor::NextTry { cause: Cause::Unanswered, .. } => NotRecalled::Unanswered,
        _ if message.next_check().since(message.at) <= NOT_RECALLED => NotRecalled::Soon,
        _ => NotRecalled::Moved,
    }
}

#[cfg(test)]
mod tests;
