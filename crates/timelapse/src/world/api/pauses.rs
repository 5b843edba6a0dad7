//! The handler's reads of the pauses.

use std::time::Duration;

use comeback_engine::{CallFailure, Pauses, Timestamp};

use crate::check::invariants::{Broken, Invariant};
use crate::check::pauses::{Known, between_reads};
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::figures::calls::ApiCall;
use crate::operators::parameter;
use crate::world::World;
use crate::world::environments::Environment;

/// As old as a stale answer is.
const STALE: Duration = Duration::from_secs(600);
/// The handler counts the time between two reads by its own clock, which may be wrong by 5 s, and wrong by as much when it has read.
const SKEW: Duration = Duration::from_secs(10);

impl World {
    /// SSM `GetParameter` of the pauses.
    pub(crate) fn read_pauses(&mut self) -> Result<Option<String>, CallFailure> {
        self.calls.add(ApiCall::ReadPauses, 1);
        let now = self.now;
        self.handling_mut().tried_to_read = Some(now);
        for (fault, cause) in [
            (Fault::PausesDenied, "AccessDeniedException: not allowed"),
            (Fault::PausesThrottled, "ThrottlingException: Rate exceeded"),
            (Fault::PausesLate, "not read within a second"),
        ] {
            if self.dice.strikes(fault, now, []) {
                return Err(CallFailure { cause: cause.into(), remedy: None });
            }
        }
        let is_stale = self.dice.strikes(Fault::PausesStale, now, []);
        let age = if is_stale { STALE } else { Duration::ZERO };
        let moment = Timestamp::from_millis(now.as_millis() - age.as_millis() as u64);
        let held = parameter(&self.scenario.pauses, moment).expect("BUG: a scenario's pauses are checked");
        let text = held.as_ref().map(Pauses::write);
        if let Some(text) = &text
            && self.dice.strikes(Fault::PausesGarbled, now, [])
        {
            return Ok(Some(text[..text.len() / 2].into()));
        }
        self.bounds.known = Known::at(&self.scenario.pauses, moment);
        let handling = self.handling.as_mut().expect("BUG: calls come from the handler");
        handling.tell_apart(&self.policy, &held.unwrap_or_default());
        Ok(text)
    }

    /// What an environment can know of the pauses after its batch.
    pub(crate) fn remember_reads(&self, environment: &mut Environment) {
        environment.known = self.bounds.known.clone();
        environment.tried_to_read = self.handling().tried_to_read;
    }

    /// Checks that the handler of a re-invocation knows of no pause, and that it has tried to know of them.
    pub(super) fn check_paused(&self, event: EventNumber) -> Result<(), Broken> {
        let handling = self.handling();
        let broken = |detail: String| Err(Broken::new(Invariant::PausedNotInvoked, event, detail));
        if let Some(why) = self.bounds.known.forbids_invokes(handling.now) {
            return broken(format!("invoked at {}; {why}", handling.now));
        }
        if self.scenario.pauses.is_empty() || handling.is_old {
            return Ok(());
        }
        let longest = between_reads(self.maximum_concurrency as u64) + SKEW;
        match handling.tried_to_read {
            Some(tried) if handling.received_at.since(tried) <= longest => Ok(()),
            Some(tried) => {
                broken(format!("invoked at {}; its handler last tried to read at {tried}", handling.now))
            }
            None => {
                broken(format!("invoked at {}; its handler has not tried to read the pauses", handling.now))
            }
        }
    }
}
