//! The observers of a run ([`Watcher`] and [`Trace`]), and the [`Violation`] of an invariant.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::time::Duration;

use comeback_engine::Outcome;

use crate::aws::agenda::START;
use crate::aws::target::TargetError;
use crate::check::{Broken, Invariant};
use crate::event::EventNumber;
use crate::faults::fault::Fault;

/// Observes what happens in a run. Each `at` is the time since the start of the run.
pub trait Watcher {
    /// Called from time to time as the virtual clock moves on.
    fn clock(&mut self, _at: Duration) {}

    /// Called when an invocation of the target ends: `attempt` is 0 for the first, and `error` is `None` on success.
    fn invoked(&mut self, _at: Duration, _event: EventNumber, _attempt: u64, _error: Option<TargetError>) {}

    /// Called after the handler has decided what to do with a message, and has done it.
    fn decided(&mut self, _at: Duration, _event: EventNumber, _outcome: &Outcome<'_>) {}

    /// Called for each event that a fault strikes.
    fn struck(&mut self, _at: Duration, _event: EventNumber, _fault: Fault) {}
}

impl Watcher for () {}

/// Passes every call to both watchers.
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

/// Records each invocation and each decision in a run as a line, in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    text: String,
    recording: Option<Recording>,
}

/// The part of a trace that explains a [`Violation`]. After a violation, the run is repeated to record this part.
#[derive(Clone, Debug, Default)]
struct Recording {
    event: Option<EventNumber>,
    history: String,
    last: VecDeque<String>,
}

impl Trace {
    /// The lines recorded so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn line(&mut self, at: Duration, event: EventNumber, what: fmt::Arguments<'_>) {
        writeln!(self.text, "{} event {event} {what}", elapsed(at)).expect("BUG: writing to a String");
        let Some(recording) = &mut self.recording else { return };
        let line = std::mem::take(&mut self.text);
        if recording.event == Some(event) {
            recording.history.push_str(&line);
        }
        if recording.last.len() == SHOWN_LINES {
            recording.last.pop_front();
        }
        recording.last.push_back(line);
    }

    /// Creates a trace that keeps only its last lines and all the lines about this event.
    pub(crate) fn recording(event: Option<EventNumber>) -> Self {
        Self { recording: Some(Recording { event, ..Recording::default() }), ..Self::default() }
    }

    /// Returns all recorded lines about the traced event, and the most recent lines about all events.
    pub(crate) fn recorded(self) -> (String, String) {
        let Recording { history, last, .. } = self.recording.unwrap_or_default();
        (history, last.into_iter().collect())
    }
}

impl Watcher for Trace {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, error: Option<TargetError>) {
        let end = error.map_or("succeeded".into(), |error| format!("failed: {}", error.error_type));
        self.line(at, event, format_args!("attempt {attempt} {end}"));
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        let step = outcome.step().unwrap_or("undecided");
        let details = [
            outcome.retry().map(|retry| format!(" retry {retry}")),
            outcome.due().map(|due| format!(" due {}", elapsed(due.since(START)))),
            outcome.visibility_timeout().map(|delay| format!(" hidden for {} s", delay.as_secs())),
            outcome.delay().map(|delay| format!(" sent again with {} s", delay.as_secs())),
            outcome.reason().map(|reason| format!(" {reason}")),
            outcome.problem().map(|problem| format!(" PROBLEM {}", problem.cause)),
        ];
        let details: String = details.into_iter().flatten().collect();
        self.line(at, event, format_args!("{step}{details}"));
    }

    fn struck(&mut self, at: Duration, event: EventNumber, fault: Fault) {
        self.line(at, event, format_args!("FAULT {fault}"));
    }
}

/// Formats a time with hours, minutes, seconds and milliseconds, for example `+03:25:45.678`.
pub(crate) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("+{hours:02}:{minutes:02}:{:02}.{:03}", seconds % 60, time.subsec_millis())
}

const SHOWN_LINES: usize = 40;

/// A broken invariant, and the history that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The broken invariant.
    pub invariant: Invariant,
    /// Seed that reproduces the violation with the same scenario and policies.
    pub seed: u64,
    /// Time at which the invariant was broken, counted from the run's start.
    pub at: Duration,
    /// The event that broke the invariant; `None` if no single event did.
    pub event: Option<EventNumber>,
    /// Description of what was wrong.
    pub detail: String,
    /// Everything that happened to the event, one line for each step; empty if `event` is `None`.
    pub history: String,
    /// The last lines of the run's trace.
    pub trace: String,
}

impl Violation {
    pub(crate) fn new(broken: Broken, seed: u64, at: Duration) -> Self {
        let Broken { invariant, event, detail } = broken;
        Self { invariant, seed, at, event, detail, history: String::new(), trace: String::new() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, seed, at, event, detail, history, trace } = self;
        writeln!(f, "broken with seed {seed} at {}: {}", elapsed(*at), invariant.statement())?;
        match event {
            None => writeln!(f, "{detail}")?,
            Some(event) => write!(f, "event {event}: {detail}\nits history:\n{history}")?,
        }
        write!(f, "the run's last lines:\n{}", trace.trim_end())
    }
}

impl std::error::Error for Violation {}
