use std::time::Duration;

use crate::{Delivered, Delivery, Operation, Sender, Undelivered};

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Delivers every entry, or hands it back with its cause.
    ///
    /// Dropping this future drops the entries that are not delivered yet; where that may happen, use
    /// [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// [`Undelivered`], with every entry that was not delivered.
    pub async fn send(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
    ) -> Result<Delivered, Undelivered<O::Entry>> {
        self.send_until(entries, || false).await
    }

    /// As [`send`](Self::send), but no call is started once `past_deadline` answers true; those under
    /// way are let finish.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn send_until(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        past_deadline: impl Fn() -> bool,
    ) -> Result<Delivered, Undelivered<O::Entry>> {
        let mut delivery = self.start(entries);
        delivery.run_until(past_deadline).await;
        delivery.finish()
    }

    /// A delivery that can be interrupted without losing an entry. Nothing is sent until it is
    /// [run](Delivery::run).
    pub fn start(&self, entries: impl IntoIterator<Item = O::Entry>) -> Delivery<'_, O, S> {
        Delivery::new(self, entries.into_iter().collect())
    }
}
