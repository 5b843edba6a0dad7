use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use comeback_engine::Outcome;

use crate::aws::failure_record::TargetError;
use crate::check::invariants::{Broken, Invariant};
use crate::faults::fault::Fault;
use crate::watch::trace::Elapsed;
use crate::{Trace, Watcher};

/// Lines of the trace that a violation shows.
const SHOWN_LINES: usize = 40;

/// An invariant did not hold. The run was stopped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// The scenario's seed: the same scenario and policy break it again.
    pub seed: u64,
    /// When, counted from the run's start.
    pub at: Duration,
    /// By which event, where what was found is of one.
    pub event: Option<usize>,
    /// What was found.
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
    event: Option<usize>,
    line: Trace,
    history: String,
    last: VecDeque<String>,
}

impl Recorder {
    pub(crate) fn new(event: Option<usize>) -> Self {
        Self { event, line: Trace::default(), history: String::new(), last: VecDeque::new() }
    }

    /// The violation, with what was recorded.
    pub(crate) fn violation(self, broken: Broken, seed: u64, at: Duration) -> Violation {
        let Broken { invariant, event, detail } = broken;
        let trace = self.last.into_iter().collect();
        Violation { invariant, seed, at, event, detail, history: self.history, trace }
    }

    fn keep(&mut self, event: usize) {
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
    fn invoked(&mut self, at: Duration, event: usize, attempt: u64, error: Option<TargetError>) {
        self.line.invoked(at, event, attempt, error);
        self.keep(event);
    }

    fn decided(&mut self, at: Duration, event: usize, outcome: &Outcome<'_>) {
        self.line.decided(at, event, outcome);
        self.keep(event);
    }

    fn struck(&mut self, at: Duration, event: usize, fault: Fault) {
        self.line.struck(at, event, fault);
        self.keep(event);
    }
}
