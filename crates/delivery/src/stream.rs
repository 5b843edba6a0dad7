//! Delivers entries that arrive over time, from a stream or from many tasks.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use async_channel::{Receiver, bounded};
use futures_util::stream::{self, Stream, StreamExt};

use crate::board::{Board, Settled};
use crate::lanes::Lanes;
use crate::operation::Operation;
use crate::outcome::{EntryError, Left, Sent};
use crate::run::{Intake, run};
use crate::sender::Sender;

/// Delivers individual entries from any number of tasks in shared batches; see [`Sender::batcher`].
pub struct Batcher<O: Operation> {
    requests: async_channel::Sender<Request<O>>,
}

struct Request<O: Operation> {
    entry: O::Entry,
    reply: Reply<O>,
}

type Reply<O> = async_channel::Sender<Settled<<O as Operation>::Entry, <O as Operation>::Receipt>>;

impl<O: Operation> Batcher<O> {
    /// Delivers the entry in a call with other entries, and waits for the outcome.
    ///
    /// If this future is dropped, the entry may still be delivered.
    ///
    /// # Errors
    ///
    /// Fails with [`Left`] if the entry was not delivered, or if the future from [`Sender::batcher`] has ended
    /// ([`EntryError::Interrupted`]).
    pub async fn send(&self, entry: O::Entry) -> Result<O::Receipt, Left<O::Entry>> {
        let (reply, outcome) = bounded(1);
        if let Err(refused) = self.requests.send(Request { entry, reply }).await {
            return Err(interrupted(refused.into_inner().entry));
        }
        let outcome = outcome.recv().await.expect("BUG: each entry has an outcome");
        outcome.map(|sent| sent.receipt)
    }
}

impl<O: Operation> Clone for Batcher<O> {
    fn clone(&self) -> Self {
        Self { requests: self.requests.clone() }
    }
}

impl<O: Operation> fmt::Debug for Batcher<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Delivers the entries from a stream, and yields each outcome as soon as it is known.
    ///
    /// At most 2 · [concurrency](Self::concurrency) · (entries per call) entries are open (without an outcome) at any
    /// time. While this many are open, or while outcomes are not taken, the sender does not poll the input stream. A
    /// full batch is sent immediately, any other batch after [`linger`](Self::linger).
    ///
    /// After an error such as a missing permission, all open entries fail
    /// ([`EntryError::Halted`](crate::EntryError::Halted)), but later entries are still sent. To prevent that, stop
    /// taking outcomes, or end the stream. Once the sender has given up on an entry in a [`Lane`](crate::Lane), all
    /// later entries in the lane fail too, unless the lane has [`last_wins`](crate::Lane::last_wins).
    ///
    /// Calls make no progress while the caller does not poll for outcomes, but they still count towards the sender's
    /// limit. Do not await another delivery by the same sender between two outcomes; spawn it instead.
    ///
    /// Dropping the returned stream of outcomes drops the open entries. To keep the rest of the input stream, pass it
    /// as `&mut`.
    pub fn send_stream<I: Stream<Item = O::Entry>>(
        &self,
        entries: I,
    ) -> impl Stream<Item = Result<Sent<O::Receipt>, Left<O::Entry>>> + use<'_, O, F, S, I> {
        let outcomes = Arc::new(Mutex::new(VecDeque::new()));
        let taken = outcomes.clone();
        let mut running = Some(Box::pin(async move {
            let mut board = Board::new(self.operation.limits(), Lanes::remembering());
            let intake = Intake {
                source: entries,
                window: self.window(),
                is_wanted: || locked(&outcomes).is_empty(),
                may_start: || true,
                deadline: pending(),
            };
            run(self, &mut board, intake, |outcome| locked(&outcomes).push_back(outcome)).await;
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

    /// Returns a [`Batcher`], which collects entries from many tasks into batches, and a future that makes the calls.
    ///
    /// Spawn the future. It ends once the batcher and its clones are dropped and every entry has an outcome. If the
    /// future is dropped first, every open entry is handed back to its task.
    ///
    /// The number of open entries is limited as for a [stream](Self::send_stream). Up to 64 more can be queued; after
    /// that, [`Batcher::send`] waits. When the sender gives up on an entry in a [`Lane`](crate::Lane), the open
    /// entries behind it fail too, but not entries that are added later.
    pub fn batcher(self) -> (Batcher<O>, impl Future<Output = ()> + use<O, F, S>) {
        // A channel allocates its whole capacity when it is created.
        let (requests, received) = bounded(self.window().min(64));
        // The board is made outside the future, so that entries are handed back even if the future is never polled.
        let board = Board::new(self.operation.limits(), Lanes::default());
        let desk = Desk::<O> { board, replies: Arc::default(), received };
        let running = async move {
            let mut desk = desk;
            let replies = desk.replies.clone();
            let entries = desk.received.clone().map(|Request { entry, reply }| {
                expect::<O>(&replies, reply);
                entry
            });
            let intake = Intake {
                source: pin!(entries),
                window: self.window(),
                is_wanted: || true,
                may_start: || true,
                deadline: pending(),
            };
            run(&self, &mut desk.board, intake, |outcome| settle::<O>(&desk.replies, outcome)).await;
        };
        (Batcher { requests }, running)
    }

    /// Returns the maximum number of entries in a stream or batcher that have no outcome yet.
    pub(crate) fn window(&self) -> usize {
        self.operation.limits().entries.saturating_mul(self.concurrency).saturating_mul(2)
    }
}

/// State of the batcher's future. When this value is dropped, it hands back every entry that has no outcome yet.
struct Desk<O: Operation> {
    board: Board<O::Entry, O::Receipt>,
    replies: Replies<O>,
    received: Receiver<Request<O>>,
}

impl<O: Operation> Drop for Desk<O> {
    fn drop(&mut self) {
        self.board.interrupt();
        self.board.settled().for_each(|outcome| settle::<O>(&self.replies, outcome));
        self.received.close();
        while let Ok(Request { entry, reply }) = self.received.try_recv() {
            answer::<O>(&reply, Err(interrupted(entry)));
        }
    }
}

/// The index of the next entry, and the reply channel for each entry that has no outcome yet, by index.
type Replies<O> = Arc<Mutex<(usize, BTreeMap<usize, Reply<O>>)>>;

fn expect<O: Operation>(replies: &Replies<O>, reply: Reply<O>) {
    let (next, replies) = &mut *locked(replies);
    replies.insert(*next, reply);
    *next += 1;
}

fn settle<O: Operation>(replies: &Replies<O>, outcome: Settled<O::Entry, O::Receipt>) {
    let index = outcome.as_ref().map_or_else(|left| left.index, |sent| sent.index);
    let reply = locked(replies).1.remove(&index).expect("BUG: each entry came with a reply");
    answer::<O>(&reply, outcome);
}

fn answer<O: Operation>(reply: &Reply<O>, outcome: Settled<O::Entry, O::Receipt>) {
    // The task may no longer be waiting for the outcome.
    let _: Result<(), _> = reply.try_send(outcome);
}

fn interrupted<E>(entry: E) -> Left<E> {
    Left { index: 0, entry, cause: EntryError::Interrupted(None), calls: 0 }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
