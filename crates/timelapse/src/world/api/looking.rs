//! The handler's looks at the queue, whose counts lag behind.

use std::collections::VecDeque;

use comeback_engine::{CallFailure, Look, Timestamp};

use crate::faults::fault::Fault;
use crate::figures::calls::ApiCall;
use crate::scenario::START;
use crate::world::World;

/// Counts of the messages in flight, a minute apart. SQS's own count may be a minute old.
#[derive(Debug, Default)]
pub(in crate::world) struct Counts {
    minute: u64,
    /// The latest is the last.
    taken: VecDeque<usize>,
}

/// As old as a stale count is, in minutes.
const STALE: usize = 10;

impl Counts {
    /// So many messages were in flight until `now`.
    pub(in crate::world) fn note(&mut self, now: Timestamp, in_flight: usize) {
        let minute = now.since(START).as_secs() / 60;
        let new = (minute - self.minute).min(STALE as u64 + 1);
        self.minute = minute;
        for _ in 0..new {
            if self.taken.len() > STALE {
                self.taken.pop_front();
            }
            self.taken.push_back(in_flight);
        }
    }
}

impl World {
    /// SQS `GetQueueAttributes` of the retry queue.
    pub(crate) fn look(&mut self) -> Result<Look, CallFailure> {
        self.calls.add(ApiCall::Look, 1);
        if self.dice.strikes(Fault::LookFailed, self.now, []) {
            return Err(CallFailure { cause: "no count in time".into(), remedy: None });
        }
        let stale = self.dice.strikes(Fault::LookStale, self.now, []);
        let counts = &self.counts.taken;
        let count = if stale { counts.front() } else { counts.back() };
        let handling = self.handling();
        let at = handling.now.saturating_add(self.now.since(handling.received_at));
        Ok(Look { in_flight: count.copied().unwrap_or_default() as u64, at })
    }
}
