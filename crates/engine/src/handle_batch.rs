//! One batch of the retry queue, from records to the report its response is made of.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::future::{FutureExt, Shared};
use futures_util::stream::{self, StreamExt};

use crate::dead_letter::{DeadLetter, batches};
use crate::decide::{Action, Decision, decide, hiding};
use crate::ports::{
    CallFailure, DeadLetterQueue, InvokeFailure, Ports, RetryQueue, SQS_BATCH_ENTRIES, Target,
    VisibilityChange,
};
use crate::report::{BatchReport, Outcome, Step};
use crate::{Policy, Reason, ReasonCode, Record, Timestamp};

/// Calls under way at once. A batch of ten due messages costs ten concurrent invokes.
const CONCURRENT_CALLS: usize = 10;

/// Handles one batch: decides for each record, then performs, deferrals first.
///
/// Once `deadline` resolves no further call is started; what is left is reported failed and comes
/// back. Nothing a record holds, and nothing a port does, can harm another record: each is decided
/// and performed apart, panics included.
pub async fn handle_batch<'a, Q: RetryQueue, T: Target, D: DeadLetterQueue>(
    records: &'a [Record],
    policy: &Policy,
    now: Timestamp,
    deadline: impl Future<Output = ()>,
    ports: Ports<'_, Q, T, D>,
) -> BatchReport<'a> {
    let items = latest_copies(records).into_iter().map(|record| Item::decided(record, policy, now)).collect();
    let mut batch = Batch { items, policy, now, ports, deadline: deadline.shared() };
    batch.defer().await;
    batch.reinvoke().await;
    batch.dead_letter().await;
    batch.hide_what_did_not_work().await;
    BatchReport { outcomes: batch.items.into_iter().map(|item| item.outcome).collect() }
}

/// SQS may deliver a message twice in one batch. The copies are one event, so one of them is
/// handled: the later, whose receipt handle is the valid one.
fn latest_copies(records: &[Record]) -> Vec<&Record> {
    let mut place_of: HashMap<&str, usize> = HashMap::with_capacity(records.len());
    let mut latest: Vec<&Record> = Vec::with_capacity(records.len());
    for record in records {
        let place = *place_of.entry(&record.message_id).or_insert(latest.len());
        match latest.get_mut(place) {
            None => latest.push(record),
            Some(kept) if record.receive_count >= kept.receive_count => *kept = record,
            Some(_) => {}
        }
    }
    latest
}

/// A record on its way through the batch.
struct Item<'a> {
    record: &'a Record,
    /// `None` if deciding panicked.
    decision: Option<Decision<'a>>,
    outcome: Outcome<'a>,
    /// The step was tried and did not work, so the message is hidden for a while.
    failed: bool,
}

impl<'a> Item<'a> {
    fn decided(record: &'a Record, policy: &Policy, now: Timestamp) -> Self {
        match catch_unwind(AssertUnwindSafe(|| decide(record, policy, now))) {
            Ok(decision) => {
                let outcome = Outcome::of(record, &decision);
                Self { record, decision: Some(decision), outcome, failed: false }
            }
            Err(_) => {
                let mut item =
                    Self { record, decision: None, outcome: Outcome::undecided(record), failed: false };
                item.fail(panicked());
                item
            }
        }
    }

    fn step(&self) -> Option<Step> {
        self.outcome.step
    }

    fn settle(&mut self, result: Result<(), CallFailure>) {
        match result {
            Ok(()) => self.outcome.settled = true,
            Err(failure) => self.fail(failure),
        }
    }

    fn fail(&mut self, failure: CallFailure) {
        self.outcome.problem = Some(failure);
        self.failed = true;
    }

    /// The target will never take the event: it is dead-lettered after all.
    fn give_up(&mut self, reason: Reason) {
        self.outcome.step = Some(Step::DeadLetter);
        self.outcome.reason = Some(reason);
    }
}

struct Batch<'a, 'p, Q, T, D, F: Future> {
    items: Vec<Item<'a>>,
    policy: &'p Policy,
    now: Timestamp,
    ports: Ports<'p, Q, T, D>,
    deadline: Shared<F>,
}

impl<Q: RetryQueue, T: Target, D: DeadLetterQueue, F: Future<Output = ()>> Batch<'_, '_, Q, T, D, F> {
    async fn defer(&mut self) {
        let deferred = self.indices(|item| item.step() == Some(Step::Defer));
        for (index, result) in self.change_visibility(&deferred).await {
            // Reported failed either way: an early return finds the backoff unserved and waits on.
            self.items[index].outcome.problem = result.err();
        }
    }

    async fn reinvoke(&mut self) {
        let due = self.indices(|item| item.step() == Some(Step::Reinvoke));
        let results: Vec<_> = stream::iter(&due)
            .map(|&index| self.within_deadline(self.invoke(index)))
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await;
        for (index, result) in due.into_iter().zip(results) {
            let item = &mut self.items[index];
            match result {
                None => item.outcome.problem = Some(not_started()),
                Some(Some(Ok(()))) => item.settle(Ok(())),
                Some(Some(Err(InvokeFailure::Later(failure)))) => item.settle(Err(failure)),
                Some(Some(Err(InvokeFailure::NotFound(cause)))) => {
                    item.give_up(Reason::new(ReasonCode::TargetNotFound, cause));
                }
                Some(Some(Err(InvokeFailure::TooLarge(cause)))) => {
                    item.give_up(Reason::new(ReasonCode::PayloadTooLarge, cause));
                }
                Some(Some(Err(InvokeFailure::Refused(cause)))) => {
                    item.give_up(Reason::new(ReasonCode::TargetRefused, cause));
                }
                Some(None) => item.fail(panicked()),
            }
        }
    }

    /// `None` if the call panicked.
    async fn invoke(&self, index: usize) -> Option<Result<(), InvokeFailure>> {
        let Some(Decision { event: Some(event), action: Action::Reinvoke(envelope), .. }) =
            &self.items[index].decision
        else {
            unreachable!("BUG: only decided re-invocations are invoked");
        };
        let payload = envelope.seal(self.policy.envelope);
        AssertUnwindSafe(self.ports.target.invoke(&event.function_arn, payload)).catch_unwind().await.ok()
    }

    async fn dead_letter(&mut self) {
        let given_up = self.indices(|item| item.step() == Some(Step::DeadLetter));
        let letters: Vec<DeadLetter> = given_up.iter().map(|&index| self.letter(index)).collect();
        let results: Vec<_> = stream::iter(batches(&letters, SQS_BATCH_ENTRIES))
            .map(|batch| self.call(batch.len(), self.ports.dead_letter_queue.send(batch)))
            .buffered(CONCURRENT_CALLS)
            .concat()
            .await;
        for (index, result) in given_up.into_iter().zip(results) {
            self.items[index].settle(result);
        }
    }

    fn letter(&self, index: usize) -> DeadLetter {
        let Item { record, decision, outcome, .. } = &self.items[index];
        let event = decision.as_ref().and_then(|decision| decision.event.as_ref());
        let reason = outcome.reason.as_ref().expect("BUG: a dead-letter has its reason");
        DeadLetter::new(record, event, reason, self.now)
    }

    async fn hide_what_did_not_work(&mut self) {
        let failed = self.indices(|item| item.failed);
        for &index in &failed {
            self.items[index].outcome.delay = Some(hiding(self.items[index].record));
        }
        for (index, result) in self.change_visibility(&failed).await {
            if result.is_err() {
                self.items[index].outcome.delay = None; // back after the queue's own timeout
            }
        }
    }

    fn indices(&self, wanted: impl Fn(&Item<'_>) -> bool) -> Vec<usize> {
        self.items.iter().enumerate().filter(|(_, item)| wanted(item)).map(|(index, _)| index).collect()
    }

    /// Hides messages for their outcome's delay, ten a call.
    async fn change_visibility(&self, indices: &[usize]) -> Vec<(usize, Result<(), CallFailure>)> {
        let entries: Vec<VisibilityChange<'_>> = indices
            .iter()
            .map(|&index| VisibilityChange {
                receipt_handle: &self.items[index].record.receipt_handle,
                visibility_timeout: self.items[index].outcome.delay.expect("BUG: nothing to hide it for"),
            })
            .collect();
        let results: Vec<_> = stream::iter(entries.chunks(SQS_BATCH_ENTRIES))
            .map(|chunk| self.call(chunk.len(), self.ports.retry_queue.change_visibility(chunk)))
            .buffered(CONCURRENT_CALLS)
            .concat()
            .await;
        indices.iter().copied().zip(results).collect()
    }

    /// A batch call with exactly one result an entry, whatever becomes of it.
    async fn call(
        &self,
        entries: usize,
        call: impl Future<Output = Vec<Result<(), CallFailure>>>,
    ) -> Vec<Result<(), CallFailure>> {
        let mut results = match self.within_deadline(AssertUnwindSafe(call).catch_unwind()).await {
            None => vec![Err(not_started()); entries],
            Some(Err(_)) => vec![Err(panicked()); entries],
            Some(Ok(results)) => results,
        };
        results.resize(entries, Err(failure("the service gave no answer for this entry")));
        results
    }

    /// `None`, and the call is not started, once the deadline has passed.
    async fn within_deadline<O>(&self, call: impl Future<Output = O>) -> Option<O> {
        match self.deadline.clone().now_or_never() {
            Some(()) => None,
            None => Some(call.await),
        }
    }
}

fn failure(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}

fn not_started() -> CallFailure {
    failure("not started: too close to the function's deadline")
}

fn panicked() -> CallFailure {
    CallFailure {
        cause: "internal error (a panic; see the log above)".into(),
        remedy: Some("report it with this message's body"),
    }
}
