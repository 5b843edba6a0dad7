use std::fmt::{self, Write};
use std::time::Duration;

use comeback_engine::{Outcome, Step};

use crate::aws::failure_record::TargetError;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::scenario::START;
use crate::watch::watcher::Watcher;

/// Writes down each invocation and each decision of a run, a line each, in the order they happened.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    text: String,
}

impl Trace {
    /// What was written so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes what was written, and starts anew.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    fn line(&mut self, at: Duration, event: EventNumber, what: fmt::Arguments<'_>) {
        writeln!(self.text, "{} event {event} {what}", Elapsed(at)).expect("BUG: writing to a String");
    }
}

impl Watcher for Trace {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, error: Option<TargetError>) {
        match error {
            None => self.line(at, event, format_args!("attempt {attempt} succeeded")),
            Some(error) => {
                self.line(at, event, format_args!("attempt {attempt} failed: {}", error.error_type))
            }
        }
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        let mut line = outcome.step.as_ref().map_or("undecided", Step::name).to_owned();
        let mut add = |what: fmt::Arguments<'_>| line.write_fmt(what).expect("BUG: writing to a String");
        if let Some(retry) = &outcome.retry {
            add(format_args!(" retry {}", retry.number));
        }
        if let Some(due) = outcome.due() {
            add(format_args!(" due {}", Elapsed(due.since(START))));
        }
        if let Some(delay) = outcome.visibility_timeout() {
            add(format_args!(" hidden for {} s", delay.as_secs()));
        }
        if let Some(delay) = outcome.moved {
            add(format_args!(" sent again with {} s", delay.as_secs()));
        }
        if let Some(reason) = outcome.reason() {
            add(format_args!(" {reason}"));
        }
        if let Some(problem) = &outcome.problem {
            add(format_args!(" PROBLEM {}", problem.cause));
        }
        self.line(at, event, format_args!("{line}"));
    }

    fn struck(&mut self, at: Duration, event: EventNumber, fault: Fault) {
        self.line(at, event, format_args!("FAULT {fault}"));
    }
}

/// `+03:25:45.678`
pub(crate) struct Elapsed(pub(crate) Duration);

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(f, "+{hours:02}:{minutes:02}:{:02}.{:03}", seconds % 60, self.0.subsec_millis())
    }
}
