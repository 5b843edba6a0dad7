use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use comeback_engine::Outcome;

use super::invariants::{Broken, Invariant};
use crate::aws::failure_record::TargetError;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::watch::trace::{Elapsed, Trace};
use crate::watch::watcher::Watcher;

/// Lines of the trace that a violation shows.
const SHOWN_LINES: usize = 40;

/// An invariant that did not hold. The run was stopped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// The scenario's seed: the same scenario and policy break it again.
    pub seed: u64,
    /// When, counted from the run's start.
    pub at: Duration,
    /// Which event broke it, if one can be named.
    pub event: Option<EventNumber>,
    /// How it was broken.
    pub detail: String,
    /// All that happened to the event, a line each.
    pub history: String,
    /// The last lines of the run's trace.
    pub trace: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, seed, at, event, detail, history, trace } = self;
        writeln!(f, "broken with seed {seed} at {}: {}", Elapsed(*at), invariant.statement())?;
        match event {
            None => writeln!(f, "{detail}")?,
            Some(event) => write!(f, "event {event}: {detail}\nits history:\n{history}")?,
        }
        write!(f, "the run's last lines:\n{}", trace.trim_end())
    }
}

impl std::error::Error for Violation {}

/// Watches a run that is known to end in a violation.
#[derive(Debug)]
pub(crate) struct Recorder {
    event: Option<EventNumber>,
    line: Trace,
    history: String,
    last: VecDeque<String>,
}

impl Recorder {
    pub(crate) fn new(event: Option<EventNumber>) -> Self {
        Self { event, line: Trace::default(), history: String::new(), last: VecDeque::new() }
    }

    /// The violation, with the lines that were recorded.
    pub(crate) fn violation(self, broken: Broken, seed: u64, at: Duration) -> Violation {
        let Broken { invariant, event, detail } = broken;
        let trace = self.last.into_iter().collect();
        Violation { invariant, seed, at, event, detail, history: self.history, trace }
    }

    fn record(&mut self, event: EventNumber) {
        let line = self.line.take();
        if self.event == Some(event) {
            self.history.push_str(&line);
        }
        if self.last.len() == SHOWN_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

impl Watcher for Recorder {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, error: Option<TargetError>) {
        self.line.invoked(at, event, attempt, error);
        self.record(event);
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        self.line.decided(at, event, outcome);
        self.record(event);
    }

    fn struck(&mut self, at: Duration, event: EventNumber, fault: Fault) {
        self.line.struck(at, event, fault);
        self.record(event);
    }
}
