//! How many messages one environment of the handler may still hide.

use std::time::Duration;

use crate::account::{CallFailure, Look};
use crate::{HideUpTo, Policy, Timestamp};

/// Between two looks of an environment. SQS's count of messages in flight may be this old too.
/// Source: "Amazon SQS standard queues", SQS Developer Guide: approximate attributes settle within a minute.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60);
/// It is time to look when there is less room than a batch of ten may need.
const LOW: u64 = 10;

/// How many messages of one retry queue one environment of the handler may still hide.
///
/// A look at the queue that finds *n* messages in flight gives room for (`HIDE_UP_TO` − *n*) / (2 ×
/// `MAXIMUM_CONCURRENCY`), or none. Each message that the environment keeps in flight takes one. Before its first look an
/// environment has no room, and a failed look gives none.
///
/// # Why this bounds the messages in flight
///
/// Assume that a count is at most a minute old, and that no poller (of *P*) is served by more than one new
/// environment within a minute. Let *s* be the last moment at which at most `HIDE_UP_TO` (*H*) messages were
/// in flight. From *s* on an environment can hide
///
/// 1. what room it has left at *s*, at most *H* / 2*P*, and
/// 2. what one look gives it, at most *H* / 2*P*. Only a look within a minute of *s* can still find a
///    count below *H*, and looks are a minute apart.
///
/// Over all pollers that is *H*. Besides, each poller may have a batch in its handler's hands. So at most
/// 2 × *H* messages are in flight, and one batch for each poller. With `HIDE_UP_TO` at its most, 55,000,
/// and 1,000 pollers these are SQS's 120,000.
#[derive(Clone, Debug)]
pub struct Room {
    hide_up_to: HideUpTo,
    pollers: u64,
    left: u64,
    looked: Option<Timestamp>,
}

impl Room {
    /// The room of an environment that has not looked yet.
    pub(crate) const fn of(policy: &Policy) -> Self {
        let pollers = policy.maximum_concurrency();
        Self { hide_up_to: policy.hide_up_to(), pollers, left: 0, looked: None }
    }

    /// The room of a handler that hides every message.
    pub(crate) const fn unlimited() -> Self {
        Self { hide_up_to: HideUpTo::Always, pollers: 1, left: 0, looked: None }
    }

    /// The room of the same environment for another queue, which it has not looked at.
    pub(crate) fn unknown(&self) -> Self {
        Self { left: 0, looked: None, ..self.clone() }
    }

    /// How many messages may be hidden now.
    pub(crate) const fn left(&self) -> u64 {
        match self.hide_up_to {
            HideUpTo::Always => u64::MAX,
            HideUpTo::UpTo(_) => self.left,
        }
    }

    /// Takes the room of messages that stay in flight.
    pub(crate) fn take(&mut self, messages: u64) {
        self.left = self.left.saturating_sub(messages);
    }

    /// Whether a look could give it room, and there was none yet.
    pub(crate) const fn is_unknown(&self) -> bool {
        self.looked.is_none() && self.share_of(0) > 0
    }

    /// Whether there is little room, and a batch that started `now` may look.
    pub(crate) fn is_low(&self, now: Timestamp) -> bool {
        let may_look = self.looked.is_none_or(|at| now.since(at) >= BETWEEN_LOOKS);
        self.share_of(0) > 0 && self.left < LOW && may_look
    }

    /// What a look gave. `now` stands for its moment if it failed.
    pub(crate) fn looked(&mut self, look: &Result<Look, CallFailure>, now: Timestamp) {
        self.left = look.as_ref().map_or(0, |look| self.share_of(look.in_flight));
        self.looked = Some(look.as_ref().map_or(now, |look| look.at));
    }

    /// The room for one environment with this many messages in flight; 0 where no look is needed.
    const fn share_of(&self, in_flight: u64) -> u64 {
        match self.hide_up_to {
            HideUpTo::Always => 0,
            HideUpTo::UpTo(most) => most.saturating_sub(in_flight) / (2 * self.pollers),
        }
    }
}

#[cfg(test)]
mod tests;
