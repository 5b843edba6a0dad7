//! The delivery loop, which makes the calls that the [`Board`] decides on.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Fuse, FusedFuture};
use futures_util::stream::{self, FuturesUnordered, Stream, StreamExt};
use tracing::Instrument;

use crate::board::{Batch, Board, Delayed, Settled};
use crate::gate::Pass;
use crate::operation::{EntryAnswer, ErrorKind, Operation, ServiceError};
use crate::sender::Sender;

/// The source of a delivery's entries, and the conditions that end the delivery early.
pub(crate) struct Intake<I, H, M, D> {
    pub(crate) source: I,
    /// Maximum number of open entries, that is, entries without an outcome.
    pub(crate) window: usize,
    /// Returns false to pause the loop while outcomes are waiting for the caller.
    pub(crate) is_wanted: H,
    /// Returns false once no further call may start; called before each call.
    pub(crate) may_start: M,
    /// Once this future completes, the delivery ends, even if calls are in flight.
    pub(crate) deadline: D,
}

/// Sends the entries from `board` and `intake`, and calls `settle` with each outcome as soon as it is decided.
pub(crate) async fn run<O, S, F>(
    sender: &Sender<O, S>,
    board: &mut Board<O::Entry, O::Receipt>,
    intake: Intake<
        impl Stream<Item = O::Entry>,
        impl Fn() -> bool,
        impl Fn() -> bool,
        impl Future<Output = ()>,
    >,
    mut settle: impl FnMut(Settled<O::Entry, O::Receipt>),
) where
    O: Operation,
    F: Future<Output = ()>,
    S: Fn(Duration) -> F,
{
    let Intake { source, window, is_wanted, may_start, deadline } = intake;
    let Sender { operation, sleep, gate, linger, .. } = sender;
    // The wait for a turn at the gate counts towards the waits of a call's entries.
    let sleeping = |wait: Delayed| sleep(wait.delay.saturating_sub(gate.pace().gap())).map(|()| wait.entries);
    let mut deadline = pin!(deadline);
    let mut under_way = UnderWay {
        source: pin!(source.fuse()),
        window,
        calls: FuturesUnordered::new(),
        waits: FuturesUnordered::new(),
        entering: pin!(Fuse::terminated()),
        enter: || gate.enter(&**sleep),
        lingering: pin!(Fuse::terminated()),
        linger: (!linger.is_zero()).then_some(|| sleep(*linger)),
    };
    loop {
        let next = poll_fn(|context| {
            if !is_wanted() {
                under_way.give_up_turn();
                return Poll::Pending;
            }
            if deadline.as_mut().poll(context).is_ready() {
                return Poll::Ready(Next::End);
            }
            // The size is read in a statement of its own, because the pace stays locked until the statement ends.
            let size = gate.pace().size();
            under_way.poll(context, board, size, &may_start)
        })
        .await;
        match next {
            Next::Entry(entry) => board.push(&**operation, entry),
            Next::Pass(pass) if board.is_ready() && may_start() => {
                under_way.lingering.set(Fuse::terminated());
                let batch = board.take(gate.pace().size());
                match begun(call(operation.clone(), batch, pass)).await {
                    Ok(answered) => {
                        under_way.waits.extend(take_in(sender, board, answered).into_iter().map(sleeping))
                    }
                    Err(call) => under_way.calls.push(call),
                }
            }
            // No further call may start, or the ready entries were settled in the meantime.
            Next::Pass(_) => {}
            Next::Answered(answered) => {
                under_way.waits.extend(take_in(sender, board, answered).into_iter().map(sleeping))
            }
            Next::Waited(entries) => board.waited(entries),
            Next::End => break,
        }
        board.settled().for_each(&mut settle);
    }
    under_way.calls.clear();
    board.stop();
    board.settled().for_each(settle);
}

enum Next<E, R> {
    Entry(E),
    /// The gate lets the next call begin.
    Pass(Pass),
    Answered(Answered<E, R>),
    /// These entries have finished waiting.
    Waited(Vec<usize>),
    /// No call is in flight and no entry is waiting, or the deadline has passed.
    End,
}

/// A finished call: its batch, the [`Pass`] that allowed it, and the service's results.
type Answered<E, R> = (Batch<E>, Pass, Result<Vec<EntryAnswer<R>>, ServiceError>);

/// Everything that the loop awaits.
struct UnderWay<'f, I: Stream, C, W, E, N, L, G> {
    source: Pin<&'f mut stream::Fuse<I>>,
    window: usize,
    calls: FuturesUnordered<C>,
    waits: FuturesUnordered<W>,
    /// The wait for a turn at the sender's gate.
    entering: Pin<&'f mut Fuse<E>>,
    enter: N,
    /// A wait for more entries, after which a batch is sent even if it is not full.
    lingering: Pin<&'f mut Fuse<L>>,
    linger: Option<G>,
}

impl<I, C, W, E, N, L, G> UnderWay<'_, I, C, W, E, N, L, G>
where
    I: Stream,
    W: Future<Output = Vec<usize>>,
    E: Future<Output = Pass>,
    N: Fn() -> E,
    L: Future<Output = ()>,
    G: Fn() -> L,
{
    fn poll<R>(
        &mut self,
        context: &mut Context<'_>,
        board: &Board<I::Item, R>,
        size: usize,
        may_start: impl Fn() -> bool,
    ) -> Poll<Next<I::Item, R>>
    where
        C: Future<Output = Answered<I::Item, R>>,
    {
        if let Poll::Ready(Some(answered)) = self.calls.poll_next_unpin(context) {
            return Poll::Ready(Next::Answered(answered));
        }
        if !may_start() {
            // No further call may start, but calls in flight may finish.
            self.waits.clear();
            self.give_up_turn();
            return if self.calls.is_empty() { Poll::Ready(Next::End) } else { Poll::Pending };
        }
        if let Poll::Ready(Some(entries)) = self.waits.poll_next_unpin(context) {
            return Poll::Ready(Next::Waited(entries));
        }
        let at_hand = board.open() < self.window && !self.source.is_done();
        if at_hand && let Poll::Ready(Some(entry)) = self.source.as_mut().poll_next(context) {
            return Poll::Ready(Next::Entry(entry));
        }
        let may_fill = at_hand && !self.source.is_done() && !board.is_full(size);
        if board.is_ready() && self.entering.is_terminated() && (!may_fill || self.has_lingered(context)) {
            self.entering.set((self.enter)().fuse());
        }
        if let Poll::Ready(pass) = self.entering.as_mut().poll(context) {
            return Poll::Ready(Next::Pass(pass));
        }
        let is_idle = board.open() == 0 || self.waits.is_empty() && !board.is_ready();
        let is_over = self.calls.is_empty() && self.source.is_done() && is_idle;
        if is_over { Poll::Ready(Next::End) } else { Poll::Pending }
    }

    /// Gives up this delivery's place at the gate, so that another delivery by the same sender can take it.
    fn give_up_turn(&mut self) {
        self.entering.set(Fuse::terminated());
    }

    /// Returns true once a batch that is not full has waited for `linger`.
    fn has_lingered(&mut self, context: &mut Context<'_>) -> bool {
        let Some(linger) = &self.linger else { return true };
        if self.lingering.is_terminated() {
            self.lingering.set(linger().fuse());
        }
        self.lingering.as_mut().poll(context).is_ready()
    }
}

/// Polls the call once, so that it begins right after the deadline was checked.
async fn begun<C: Future>(call: C) -> Result<C::Output, Pin<Box<C>>> {
    let mut call = Box::pin(call);
    match poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
        Poll::Ready(answered) => Ok(answered),
        Poll::Pending => Err(call),
    }
}

/// Makes one call; a panic affects only the entries in this call.
async fn call<O: Operation>(
    operation: std::sync::Arc<O>,
    batch: Batch<O::Entry>,
    pass: Pass,
) -> Answered<O::Entry, O::Receipt> {
    let span = tracing::debug_span!("call", entries = batch.entries.len());
    let carried: Vec<&O::Entry> = batch.entries.iter().map(|entry| &**entry).collect();
    let calling = AssertUnwindSafe(async { operation.call(&carried).await }).catch_unwind();
    let result = calling.instrument(span.clone()).await.unwrap_or_else(|_| Err(ServiceError::panicked()));
    span.in_scope(|| match &result {
        Ok(answers) => {
            let done = answers.iter().filter(|answer| answer.is_ok()).count();
            tracing::debug!(done, "answered");
        }
        // The message is not logged, because it may quote an entry.
        Err(ServiceError { kind, code, .. }) => tracing::debug!(?kind, code, "failed whole"),
    });
    drop(carried);
    (batch, pass, result)
}

/// Reports a call's result to the gate and the [`Board`], and returns the entries to send again.
fn take_in<O: Operation, S>(
    sender: &Sender<O, S>,
    board: &mut Board<O::Entry, O::Receipt>,
    (batch, pass, result): Answered<O::Entry, O::Receipt>,
) -> Vec<Delayed> {
    let entries = batch.entries.len();
    let errors: Vec<&ServiceError> = match &result {
        Ok(answers) => answers.iter().filter_map(|answer| answer.as_ref().err()).collect(),
        Err(error) => vec![error; entries],
    };
    let throttled = errors.iter().filter(|error| error.kind == ErrorKind::Throttled).count().min(entries);
    let asked = errors.iter().filter_map(|&error| Some((error.retry_after?, error)));
    let asked = asked.max_by_key(|(pause, _)| *pause).map(|(pause, error)| (pause, error.clone()));
    // A call that failed as a whole for a reason other than throttling says nothing about the pace.
    if result.is_ok() || throttled > 0 {
        sender.gate.pace().answered(pass.round, entries, entries - throttled);
    }
    let again = board.answered(batch, result, &sender.retries);
    if let Some((asked, error)) = asked {
        let own = again.iter().map(|wait| wait.delay).max().unwrap_or_default();
        let pause = sender.gate.pace().pause(asked, own);
        sender.tell_pause(pause, &error);
    }
    again
}
