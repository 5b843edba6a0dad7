use std::future::{Future, pending};
use std::time::Duration;

use crate::{Delivered, Operation, Sender, Undelivered};

/// Entries on their way: what [`Sender::start`] gives.
///
/// The futures of [`run`](Self::run) and [`run_until`](Self::run_until) may be dropped at any moment.
/// [`finish`](Self::finish) then hands back every entry whose delivery was not answered
/// ([`Cause::Interrupted`](crate::Cause::Interrupted)); a call that was under way may have delivered
/// it. Or run it again: what was under way counts as sent without an answer, and is retried.
#[must_use = "nothing is sent until it is run, and what is left is in `finish`"]
pub struct Delivery<'s, O: Operation, S> {
    sender: &'s Sender<O, S>,
    entries: Vec<O::Entry>,
}

impl<'s, O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Delivery<'s, O, S> {
    pub(crate) fn new(sender: &'s Sender<O, S>, entries: Vec<O::Entry>) -> Self {
        Self { sender, entries }
    }

    /// Sends until every entry is delivered or given up.
    pub async fn run(&mut self) {
        self.run_until(pending()).await;
    }

    /// As [`run`](Self::run), but starts no call once `deadline` has resolved.
    ///
    /// The deadline is looked at before each call and after each wait, and need not wake anyone; one
    /// that does, such as a timer, also ends a wait early.
    pub async fn run_until(&mut self, deadline: impl Future<Output = ()>) {
        let _ = (deadline, &self.entries);
        for entry in &self.entries {
            let _ = self.sender.operation.call(&[entry]).await;
        }
    }

    /// What became of the entries.
    ///
    /// # Errors
    ///
    /// [`Undelivered`], with every entry that was not delivered.
    pub fn finish(self) -> Result<Delivered, Undelivered<O::Entry>> {
        todo!()
    }
}
