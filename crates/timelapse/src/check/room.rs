use comeback_engine::{HideUpTo, Policy};

use super::{Broken, Invariant};
use crate::faults::fault::Room;
use crate::scenario::Scenario;

/// What the room for hidden messages guarantees in a run, if only the handler keeps messages in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightBound {
    /// The most messages that may be in flight; `None` if they are not bounded.
    most: Option<usize>,
    /// The queue's limit may not be reached.
    no_stall: bool,
}

impl InFlightBound {
    pub(crate) fn of(policy: &Policy, scenario: &Scenario) -> Self {
        let HideUpTo::UpTo(most) = policy.hide_up_to() else { return Self { most: None, no_stall: false } };
        let batches = policy.maximum_concurrency() as usize * scenario.batch_size;
        let bound = 2 * most as usize + batches;
        let fits = bound <= scenario.in_flight_limit;
        let worst = scenario.faults.iter().map(|(fault, _)| fault.room()).max();
        let most = (fits && worst <= Some(Room::Kept)).then_some(bound);
        Self { most, no_stall: fits && worst < Some(Room::Full) }
    }

    /// An error if more are in flight, or if some are visible though a poller has time for them.
    pub(crate) fn check(self, in_flight: usize, left_visible: bool) -> Result<(), Broken> {
        if let Some(most) = self.most.filter(|&most| in_flight > most) {
            let detail = format!("{in_flight} messages are in flight; {most} at most");
            return Err(Broken::new(Invariant::BoundedInFlight, None, detail));
        }
        if left_visible && self.no_stall {
            let detail = format!("messages are visible, pollers are free, and {in_flight} are in flight");
            return Err(Broken::new(Invariant::NoStall, None, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::Settings;

    use super::*;
    use crate::faults::fault::Fault;
    use crate::faults::mix::{Faults, Strikes};

    fn bound(hide_up_to: HideUpTo, scenario: &Scenario) -> InFlightBound {
        let settings = Settings { hide_up_to, maximum_concurrency: 5, ..Settings::default() };
        InFlightBound::of(&Policy::new(settings).expect("a valid policy"), scenario)
    }

    fn broken(bound: InFlightBound, in_flight: usize, left_visible: bool) -> Option<Invariant> {
        bound.check(in_flight, left_visible).err().map(|broken| broken.invariant)
    }

    #[test]
    fn twice_as_many_and_a_batch_a_poller_are_in_flight_and_none_is_visible() {
        let bound = bound(HideUpTo::UpTo(100), &Scenario::default());
        assert_eq!((broken(bound, 250, false), broken(bound, 0, false)), (None, None));
        assert_eq!(broken(bound, 251, false), Some(Invariant::BoundedInFlight));
        assert_eq!(broken(bound, 250, true), Some(Invariant::NoStall));
    }

    #[test]
    fn where_others_keep_messages_in_flight_nothing_is_bounded() {
        let with = |fault| {
            let faults = Faults::default().with(fault, Strikes::always(0.1));
            broken(bound(HideUpTo::UpTo(100), &Scenario { faults, ..Scenario::default() }), 251, true)
        };
        assert_eq!(with(Fault::InvokeThrottled), Some(Invariant::BoundedInFlight));
        for fault in [Fault::PollerThrottled, Fault::MoveRefused] {
            assert_eq!(with(fault), Some(Invariant::NoStall), "{fault}");
        }
        for fault in [Fault::InFlightLimit, Fault::HandlerOutage, Fault::LookStale] {
            assert_eq!(with(fault), None, "{fault}");
        }
        assert_eq!(broken(bound(HideUpTo::Always, &Scenario::default()), 100_000, true), None);
        let small = Scenario { in_flight_limit: 249, ..Scenario::default() };
        assert_eq!(broken(bound(HideUpTo::UpTo(100), &small), 251, true), None);
    }
}
