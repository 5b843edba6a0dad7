//! What the room for hidden messages guarantees, where nothing but the handler keeps messages in flight.

use comeback_engine::{HideUpTo, Policy};

use super::invariants::{Broken, Invariant};
use crate::faults::fault::Fault;
use crate::scenario::Scenario;

/// The most messages that may be in flight; `None` where that is not bounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightBound(Option<usize>);

impl InFlightBound {
    pub(crate) fn of(policy: &Policy, scenario: &Scenario) -> Self {
        let HideUpTo::UpTo(most) = policy.hide_up_to() else { return Self(None) };
        let batches = policy.maximum_concurrency() as usize * scenario.batch_size;
        let bound = 2 * most as usize + batches;
        let holds =
            bound <= scenario.in_flight_limit && scenario.faults.iter().all(|(fault, _)| spares(fault));
        Self(holds.then_some(bound))
    }

    /// # Errors
    ///
    /// More are in flight, or some are visible though a poller has time for them.
    pub(crate) fn check(self, in_flight: usize, left_visible: bool) -> Result<(), Broken> {
        let Some(most) = self.0 else { return Ok(()) };
        if in_flight > most {
            let detail = format!("{in_flight} messages are in flight; {most} at most");
            return Err(Broken::new(Invariant::BoundedInFlight, None, detail));
        }
        if left_visible {
            let detail = format!("messages are visible, pollers are free, and {in_flight} are in flight");
            return Err(Broken::new(Invariant::NoStall, None, detail));
        }
        Ok(())
    }
}

/// Whether a fault leaves the room as it is: it neither keeps messages in flight that the handler does not
/// know of, nor keeps it from moving them, nor makes its counts or its clock wrong.
fn spares(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::InvokeThrottled
            | Fault::InvokeTimedOut
            | Fault::InvokeAnswerLost
            | Fault::DeadLetterRefused
            | Fault::DeadLetterLost
            | Fault::ReceiveCountHigh
            | Fault::ReceiveCountLow
            | Fault::LookFailed
            | Fault::IncompleteRecord
            | Fault::UnlistedFunction
            | Fault::AttributeGarbled
            | Fault::AttributeStripped
    )
}
