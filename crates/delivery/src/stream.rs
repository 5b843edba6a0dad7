use std::collections::VecDeque;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{self, Stream};

use crate::board::Board;
use crate::run::{Course, run};
use crate::{Left, Operation, Sender, Sent};

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Delivers what the stream gives, and gives each outcome as it comes: an entry that was delivered, or is
    /// handed back with its cause. For an iterator, use [`stream::iter`](futures_util::stream::iter).
    ///
    /// Memory is bounded: at most 2 · [concurrency](Self::concurrency) · entries of a call are open at once, and
    /// meanwhile the stream is not asked for more. Nor is it if the outcomes are not taken. A batch goes when
    /// it is full, or when the stream has nothing at hand, at once or after [`linger`](Self::linger).
    ///
    /// What ends a delivery, such as a permission that is missing, hands back the entries that are open then
    /// ([`Cause::Halted`](crate::Cause::Halted)). Those that the stream gives afterwards are tried anew: stop taking
    /// outcomes, or end the stream, if that is pointless. Once an entry of a [`Lane`](crate::Lane) is left, the rest of the
    /// lane is left too; the stream remembers such lanes.
    ///
    /// Between two outcomes its calls stand still, and keep their places under the sender's limit: do not await
    /// another delivery of the same sender there, but spawn it.
    ///
    /// Dropping the outcomes drops the entries that are open. To keep what the stream has not given, pass
    /// `&mut` of it.
    pub fn send_stream<I: Stream<Item = O::Entry>>(
        &self,
        entries: I,
    ) -> impl Stream<Item = Result<Sent<O::Receipt>, Left<O::Entry>>> + use<'_, O, F, S, I> {
        let outcomes = Arc::new(Mutex::new(VecDeque::new()));
        let taken = outcomes.clone();
        let mut running = Some(Box::pin(async move {
            let mut board = Board::new(self.limits_of_calls());
            let course = Course {
                source: entries,
                window: self.window(),
                is_wanted: || locked(&outcomes).is_empty(),
                may_start: || true,
                deadline: pending(),
            };
            run(self, &mut board, course, |outcome| locked(&outcomes).push_back(outcome)).await;
        }));
        stream::poll_fn(move |context| {
            loop {
                if let Some(outcome) = locked(&taken).pop_front() {
                    return Poll::Ready(Some(outcome));
                }
                let Some(run) = &mut running else { return Poll::Ready(None) };
                if run.as_mut().poll(context).is_ready() {
                    running = None;
                } else if locked(&taken).is_empty() {
                    return Poll::Pending;
                }
            }
        })
    }

    /// How many entries of a stream are open at once.
    pub(crate) fn window(&self) -> usize {
        self.limits_of_calls().entries.saturating_mul(self.concurrency).saturating_mul(2)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
