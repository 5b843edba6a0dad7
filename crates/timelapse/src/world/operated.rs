//! The parts of a simulated run that operators can see and change: the handler's log, the pauses parameter, and the
//! visibility of messages.

use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{BatchReport, Policies, Timestamp};

use super::World;
use crate::account::SimulatedAccount;
use crate::aws::queue::{Depth, ReceiptHandle};
use crate::operators::OperatedDeployment;

#[derive(Debug, Default)]
pub(super) struct Operated {
    /// Every value of the pauses parameter, with the time when it was written, oldest first.
    texts: Vec<(Timestamp, String)>,
    /// Log lines that operators have not read yet, each with its time; `None` while no operator reads the log.
    lines: Option<Vec<(Timestamp, String)>>,
}

impl Operated {
    pub(super) fn text(&self, moment: Timestamp) -> Option<String> {
        let written = self.texts.iter().rev().find(|(at, _)| *at <= moment);
        written.map(|(_, text)| text.clone())
    }

    pub(super) fn log(&mut self, report: &BatchReport<'_>, now: Timestamp) {
        let Some(lines) = &mut self.lines else { return };
        lines.extend(report.log_lines(now).map(|line| {
            let text = serde_json::to_string(&line).expect("BUG: a log line is not JSON");
            (now, text)
        }));
    }
}

impl World {
    pub(crate) fn operators_are_done(&mut self) {
        self.operated.lines = None;
    }

    fn recall(&mut self, handle: &str, timeout: Duration) -> Result<(), String> {
        let hidden = ReceiptHandle::parse(handle).and_then(|receipt| self.queue.hidden(receipt));
        self.queue.change_visibility(self.now, &mut self.agenda, handle, timeout)?;
        if let Some((carried, before)) = hidden {
            self.oracle.recalled(&carried, before, self.now.saturating_add(timeout), self.now);
        }
        Ok(())
    }
}

impl OperatedDeployment for SimulatedAccount<World> {
    fn now(&self) -> Timestamp {
        self.service.borrow().now
    }

    fn policies(&self) -> Arc<Policies> {
        let world = self.service.borrow();
        Arc::clone(world.environments.policies(world.now))
    }

    fn take_log(&self) -> Vec<(Timestamp, String)> {
        self.service.borrow_mut().operated.lines.replace(Vec::new()).unwrap_or_default()
    }

    fn depth(&self) -> Depth {
        self.service.borrow().queue.depth()
    }

    fn write_pauses(&self, text: &str) {
        let world = &mut *self.service.borrow_mut();
        world.operated.texts.push((world.now, text.to_owned()));
        world.oracle.pauses_written(text, world.now);
    }

    fn recall(&self, receipt_handle: &str, timeout: Duration) -> Result<(), String> {
        self.service.borrow_mut().recall(receipt_handle, timeout)
    }

    fn command_failed(&self, what: String, excused: bool) {
        self.service.borrow_mut().oracle.command_failed(what, excused);
    }
}
