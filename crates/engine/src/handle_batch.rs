//! One batch of the retry queue, from records to the report its response is made of.

mod calls;
mod item;

use std::collections::HashMap;
use std::future::Future;

use futures_util::stream::{self, StreamExt};

use self::calls::{CONCURRENT_INVOKES, Calls};
use self::item::Item;
use crate::due::hiding;
use crate::ports::{DeadLetterQueue, Ports, RetryQueue, Target, VisibilityChange};
use crate::report::{BatchReport, Step};
use crate::{Policy, Record, Timestamp};

/// Handles one batch: decides for each record, then performs, deferrals first.
///
/// `deadline` is looked at before each call, never waited for.
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
    let mut items: Vec<Item<'a>> =
        latest_copies(records).into_iter().map(|record| Item::decided(record, policy, now)).collect();
    let calls = Calls::new(ports, deadline);
    defer(&mut items, &calls).await;
    reinvoke(&mut items, &calls, policy).await;
    dead_letter(&mut items, &calls, now).await;
    hide_what_did_not_work(&mut items, &calls).await;
    BatchReport { outcomes: items.into_iter().map(|item| item.outcome).collect() }
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

async fn defer<Q: RetryQueue, T: Target, D: DeadLetterQueue, F: Future<Output = ()>>(
    items: &mut [Item<'_>],
    calls: &Calls<'_, Q, T, D, F>,
) {
    let deferred: Vec<_> = with_step(items, Step::Defer).collect();
    let answers = calls.change_visibility(&visibility_changes(&deferred)).await;
    for (item, answer) in deferred.into_iter().zip(answers) {
        // Kept either way: an early return finds the backoff unserved and waits on.
        item.outcome.problem = answer.err();
    }
}

async fn reinvoke<Q: RetryQueue, T: Target, D: DeadLetterQueue, F: Future<Output = ()>>(
    items: &mut [Item<'_>],
    calls: &Calls<'_, Q, T, D, F>,
    policy: &Policy,
) {
    let due = stream::iter(with_step(items, Step::Reinvoke));
    due.for_each_concurrent(CONCURRENT_INVOKES, |item| async move {
        let (function_arn, envelope) = item.reinvocation();
        let answer = calls.invoke(function_arn, envelope, policy.envelope).await;
        item.invoked(answer);
    })
    .await;
}

async fn dead_letter<Q: RetryQueue, T: Target, D: DeadLetterQueue, F: Future<Output = ()>>(
    items: &mut [Item<'_>],
    calls: &Calls<'_, Q, T, D, F>,
    now: Timestamp,
) {
    let mut given_up = Vec::new();
    let mut letters = Vec::new();
    for item in with_step(items, Step::DeadLetter) {
        match item.letter(now) {
            Ok(letter) => {
                letters.push(letter);
                given_up.push(item);
            }
            Err(failure) => item.settle(Err(failure)),
        }
    }
    for (item, answer) in given_up.into_iter().zip(calls.send(&letters).await) {
        item.settle(answer);
    }
}

async fn hide_what_did_not_work<Q: RetryQueue, T: Target, D: DeadLetterQueue, F: Future<Output = ()>>(
    items: &mut [Item<'_>],
    calls: &Calls<'_, Q, T, D, F>,
) {
    let mut failed: Vec<_> = items.iter_mut().filter(|item| item.failed).collect();
    for item in &mut failed {
        item.outcome.delay = Some(hiding(item.record));
    }
    let answers = calls.change_visibility(&visibility_changes(&failed)).await;
    for (item, answer) in failed.into_iter().zip(answers) {
        if answer.is_err() {
            item.outcome.delay = None; // back after the queue's own timeout
        }
    }
}

fn with_step<'i, 'a>(items: &'i mut [Item<'a>], step: Step) -> impl Iterator<Item = &'i mut Item<'a>> {
    items.iter_mut().filter(move |item| item.outcome.step == Some(step))
}

/// Each message hidden for its outcome's delay.
fn visibility_changes<'a>(items: &[&mut Item<'a>]) -> Vec<VisibilityChange<'a>> {
    let change = |item: &&mut Item<'a>| VisibilityChange {
        receipt_handle: &item.record.receipt_handle,
        visibility_timeout: item.outcome.delay.expect("BUG: what is hidden has its delay"),
    };
    items.iter().map(change).collect()
}
