use std::time::Duration;

use comeback_engine::Outcome;

use crate::aws::failure_record::TargetError;
use crate::event::EventNumber;
use crate::faults::fault::Fault;

/// Sees a run as it goes. Times are counted from its start. `()` watches nothing.
pub trait Watcher {
    /// The virtual clock has moved on. This is called now and then.
    fn clock(&mut self, _at: Duration) {}

    /// An invocation of the target ended; `attempt` 0 is an event's first.
    fn invoked(&mut self, _at: Duration, _event: EventNumber, _attempt: u64, _error: Option<TargetError>) {}

    /// The handler decided about a message of an event, and acted.
    fn decided(&mut self, _at: Duration, _event: EventNumber, _outcome: &Outcome<'_>) {}

    /// A fault struck an event, alone or with others.
    fn struck(&mut self, _at: Duration, _event: EventNumber, _fault: Fault) {}
}

impl Watcher for () {}

/// Two watchers of one run.
impl<A: Watcher, B: Watcher> Watcher for (A, B) {
    fn clock(&mut self, at: Duration) {
        self.0.clock(at);
        self.1.clock(at);
    }

    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, error: Option<TargetError>) {
        self.0.invoked(at, event, attempt, error);
        self.1.invoked(at, event, attempt, error);
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        self.0.decided(at, event, outcome);
        self.1.decided(at, event, outcome);
    }

    fn struck(&mut self, at: Duration, event: EventNumber, fault: Fault) {
        self.0.struck(at, event, fault);
        self.1.struck(at, event, fault);
    }
}
