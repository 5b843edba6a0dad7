use std::future::pending;
use std::time::Duration;

use crate::{Delivery, Operation, Outcome, Sender};

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Delivers every entry, or hands it back with its cause.
    ///
    /// Dropping this future drops the entries that are not delivered yet; where that may happen, use
    /// [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// [`Undelivered`](crate::Undelivered), with every entry that was not delivered.
    pub async fn send(&self, entries: impl IntoIterator<Item = O::Entry>) -> Outcome<O> {
        self.send_until(entries, pending()).await
    }

    /// As [`send`](Self::send), but ends with `deadline`, such as `tokio::time::sleep`, whatever is under way:
    /// the entries of a call that hangs are handed back as [`Unanswered`](crate::Cause::Unanswered).
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn send_until(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        deadline: impl Future<Output = ()>,
    ) -> Outcome<O> {
        let mut delivery = self.start(entries);
        delivery.run_until(deadline).await;
        delivery.finish()
    }

    /// As [`send`](Self::send), but starts a call only while `may_start` answers true; those under way are let
    /// finish, which takes as long as the client's own timeouts allow.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn send_while(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        may_start: impl Fn() -> bool,
    ) -> Outcome<O> {
        let mut delivery = self.start(entries);
        delivery.run_while(may_start).await;
        delivery.finish()
    }

    /// A delivery that can be interrupted without losing an entry. Nothing is sent until it is
    /// [run](Delivery::run).
    pub fn start(&self, entries: impl IntoIterator<Item = O::Entry>) -> Delivery<'_, O, S> {
        Delivery::new(self, entries)
    }
}
