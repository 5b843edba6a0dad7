use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, bounded};
use futures_util::stream::StreamExt;

use crate::board::{Board, Settled};
use crate::run::{Course, run};
use crate::{Cause, Left, Operation, Sender};

/// Takes single entries from any number of tasks, and delivers them in batches: see
/// [`Sender::batcher`]. Its clones feed the same batches.
pub struct Batcher<O: Operation> {
    letters: async_channel::Sender<Letter<O>>,
}

/// An entry, and where its outcome goes.
struct Letter<O: Operation> {
    entry: O::Entry,
    reply: Reply<O>,
}

type Reply<O> = async_channel::Sender<Settled<<O as Operation>::Entry, <O as Operation>::Receipt>>;

impl<O: Operation> Batcher<O> {
    /// Waits until the entry is delivered, with others in one call.
    ///
    /// If this future is dropped, the entry may be delivered all the same.
    ///
    /// # Errors
    ///
    /// [`Left`]: it was not delivered, or the batcher's own future has ended ([`Cause::Interrupted`]).
    pub async fn send(&self, entry: O::Entry) -> Result<O::Receipt, Left<O::Entry>> {
        let (reply, outcome) = bounded(1);
        if let Err(refused) = self.letters.send(Letter { entry, reply }).await {
            return Err(interrupted(refused.into_inner().entry));
        }
        let outcome = outcome.recv().await.expect("BUG: each entry has an outcome");
        outcome.map(|sent| sent.receipt)
    }
}

impl<O: Operation> Clone for Batcher<O> {
    fn clone(&self) -> Self {
        Self { letters: self.letters.clone() }
    }
}

impl<O: Operation> fmt::Debug for Batcher<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Batches the single entries of many tasks. Spawn the future: it makes the calls, and ends when the
    /// batcher and all its clones are dropped and everything is delivered or handed back.
    ///
    /// A batch goes when it is full, or after [`linger`](Self::linger). At most as many entries are open as of a
    /// [stream](Self::send_stream), and 64 more are at hand; meanwhile [`Batcher::send`] waits. If the future is
    /// dropped, each entry is handed back. An entry of a [`Lane`](crate::Lane) that was left leaves those behind it
    /// that are open, and none that comes later.
    pub fn batcher(self) -> (Batcher<O>, impl Future<Output = ()> + use<O, F, S>) {
        // A channel allocates all its room at once.
        let (letters, received) = bounded(self.window().min(64));
        // Made here, so that it hands entries back even if the future is dropped before it is first polled.
        let board = Board::forgetting(self.limits_of_calls());
        let desk = Desk::<O> { board, replies: Arc::default(), received };
        let running = async move {
            let mut desk = desk;
            let replies = desk.replies.clone();
            let entries = desk.received.clone().map(|Letter { entry, reply }| {
                expect::<O>(&replies, reply);
                entry
            });
            let course = Course {
                source: pin!(entries),
                window: self.window(),
                is_wanted: || true,
                may_start: || true,
                deadline: pending(),
            };
            run(&self, &mut desk.board, course, |outcome| settle::<O>(&desk.replies, outcome)).await;
        };
        (Batcher { letters }, running)
    }
}

/// What the batcher's future holds. Dropped with entries on it, it hands each back.
struct Desk<O: Operation> {
    board: Board<O::Entry, O::Receipt>,
    replies: Replies<O>,
    received: Receiver<Letter<O>>,
}

impl<O: Operation> Drop for Desk<O> {
    fn drop(&mut self) {
        self.board.interrupt();
        self.board.settled().for_each(|outcome| settle::<O>(&self.replies, outcome));
        self.received.close();
        while let Ok(Letter { entry, reply }) = self.received.try_recv() {
            answer::<O>(&reply, Err(interrupted(entry)));
        }
    }
}

/// Where the outcomes go: the next entry's place, and the replies of the open ones by theirs.
type Replies<O> = Arc<Mutex<(usize, BTreeMap<usize, Reply<O>>)>>;

fn expect<O: Operation>(replies: &Replies<O>, reply: Reply<O>) {
    let (next, replies) = &mut *replies.lock().unwrap_or_else(PoisonError::into_inner);
    replies.insert(*next, reply);
    *next += 1;
}

fn settle<O: Operation>(replies: &Replies<O>, outcome: Settled<O::Entry, O::Receipt>) {
    let index = outcome.as_ref().map_or_else(|left| left.index, |sent| sent.index);
    let (_, replies) = &mut *replies.lock().unwrap_or_else(PoisonError::into_inner);
    answer::<O>(&replies.remove(&index).expect("BUG: each entry came with a reply"), outcome);
}

fn answer<O: Operation>(reply: &Reply<O>, outcome: Settled<O::Entry, O::Receipt>) {
    // Nobody may wait for it any more.
    let _: Result<(), _> = reply.try_send(outcome);
}

fn interrupted<E>(entry: E) -> Left<E> {
    Left { index: 0, entry, cause: Cause::Interrupted(None), calls: 0 }
}
