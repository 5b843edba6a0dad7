//! How many messages one environment of the handler may still hide.

use std::time::Duration;

use crate::account::{CallFailure, Look};
use crate::policy::settings::HideUpTo;
use crate::{Policy, Timestamp};

/// Between two looks of an environment; SQS's count of messages in flight may be this old too.
/// Source: "Amazon SQS standard queues", SQS Developer Guide: attributes that are approximate settle within
/// a minute.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60);
/// With less room than a batch of ten may need, it is time to look.
const LOW: u64 = 10;

/// The messages of one retry queue that one environment of the handler may still hide.
///
/// A look at the queue that finds *n* messages in flight gives room for (`HIDE_UP_TO` − *n*) / (2 ×
/// `MAXIMUM_CONCURRENCY`) of them, or none. Each message that the environment keeps in flight takes one.
/// A new environment hides its first batch without a look; a look that failed gives no room.
///
/// # Why this bounds the messages in flight
///
/// Assume that a count is at most a minute old, that there are at most as many environments as pollers
/// (*P*), and that each outlives its first look. Let *s* be the last moment at which at most `HIDE_UP_TO`
/// (*H*) messages were in flight. From *s* on an environment can hide
///
/// 1. what room it has left at *s*, at most *H* / 2*P*, and
/// 2. what one look gives it, at most *H* / 2*P*. Only a look within a minute of *s* can still find a
///    count below *H*, and looks are a minute apart.
///
/// Over all environments that is *H*. An environment that is new since *s* adds its first batch. So at most
/// 2 × *H* messages are in flight, and one batch for each poller. With `HIDE_UP_TO` at its most, 55,000,
/// and 1,000 pollers these are SQS's 120,000.
#[derive(Clone, Debug)]
pub struct Room {
    hide_up_to: HideUpTo,
    pollers: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Until the end of its first batch.
    New,
    /// `looked` is `None` if there was no time for a look yet.
    Known { left: u64, looked: Option<Timestamp> },
}

impl Room {
    /// Of an environment that has handled nothing yet.
    pub const fn of(policy: &Policy) -> Self {
        Self { hide_up_to: policy.hide_up_to(), pollers: policy.maximum_concurrency(), state: State::New }
    }

    /// Of a handler that hides every message, as all did before there were moves.
    pub const fn unlimited() -> Self {
        Self { hide_up_to: HideUpTo::Always, pollers: 1, state: State::New }
    }

    /// How many messages may be hidden now.
    pub(crate) const fn left(&self) -> u64 {
        match (self.hide_up_to, self.state) {
            (HideUpTo::Always, _) => u64::MAX,
            (HideUpTo::UpTo(0), _) => 0,
            (HideUpTo::UpTo(_), State::New) => u64::MAX,
            (HideUpTo::UpTo(_), State::Known { left, .. }) => left,
        }
    }

    /// So many messages of a batch stay in flight.
    pub(crate) fn take(&mut self, messages: u64) {
        if let State::Known { left, .. } = &mut self.state {
            *left = left.saturating_sub(messages);
        }
    }

    /// A batch that started `now` is at its end. Gives whether the environment should look.
    pub(crate) fn end_batch(&mut self, now: Timestamp) -> bool {
        let (left, looked) = match self.state {
            State::New => (0, None),
            State::Known { left, looked } => (left, looked),
        };
        self.state = State::Known { left, looked };
        let may_look = looked.is_none_or(|at| now.since(at) >= BETWEEN_LOOKS);
        matches!(self.hide_up_to, HideUpTo::UpTo(1..)) && left < LOW && may_look
    }

    /// What a look gave. `now` stands for its moment if it failed.
    pub(crate) fn looked(&mut self, look: &Result<Look, CallFailure>, now: Timestamp) {
        let (left, at) = match (look, self.hide_up_to) {
            (Ok(look), HideUpTo::UpTo(most)) => {
                (most.saturating_sub(look.in_flight) / (2 * self.pollers), look.at)
            }
            (Ok(look), HideUpTo::Always) => (0, look.at),
            (Err(_), _) => (0, now),
        };
        self.state = State::Known { left, looked: Some(at) };
    }
}

#[cfg(test)]
mod tests;
