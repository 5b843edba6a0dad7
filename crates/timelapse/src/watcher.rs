use std::time::Duration;

use comeback_engine::Outcome;

use crate::failure_record::TargetError;
use crate::faults::Fault;

/// Sees a run as it goes. Times are counted from its start. `()` watches nothing.
pub trait Watcher {
    /// The virtual clock has moved on; told now and then.
    fn clock(&mut self, _at: Duration) {}

    /// An invocation of the target ended; `attempt` 0 is an event's first.
    fn invoked(&mut self, _at: Duration, _event: usize, _attempt: u64, _error: Option<TargetError>) {}

    /// The handler decided about a message of an event, and acted.
    fn decided(&mut self, _at: Duration, _event: usize, _outcome: &Outcome<'_>) {}

    /// A fault struck an event, alone or with others.
    fn struck(&mut self, _at: Duration, _event: usize, _fault: Fault) {}
}

impl Watcher for () {}
