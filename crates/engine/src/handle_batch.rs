//! One batch of the retry queue, from records to the report its response is made of.

mod guarded;
mod item;

use std::collections::HashMap;

use futures_util::stream::{self, StreamExt};

use self::guarded::{CONCURRENT_INVOKES, Guarded};
use self::item::Item;
use crate::account::{Account, VisibilityChange};
use crate::dead_letter::DeadLetter;
use crate::due::hiding;
use crate::report::{BatchReport, Step};
use crate::{Policy, Record, Timestamp};

/// Handles one batch: decides for each record, then performs, deferrals first.
///
/// `past_deadline` is asked before each call. Once it answers true no further call is started; what
/// is left is reported failed and comes back. Nothing a record holds, and nothing the account does,
/// can harm another record: each is decided and performed apart, panics included.
pub async fn handle_batch<'a, A: Account>(
    records: &'a [Record],
    policy: &Policy,
    now: Timestamp,
    past_deadline: &dyn Fn() -> bool,
    account: &A,
) -> BatchReport<'a> {
    let mut items: Vec<Item<'a>> =
        latest_copies(records).into_iter().map(|record| Item::decided(record, policy, now)).collect();
    let account = Guarded { account, past_deadline };
    defer(&mut items, &account).await;
    reinvoke(&mut items, &account, policy).await;
    dead_letter(&mut items, &account, now).await;
    hide_what_did_not_work(&mut items, &account).await;
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

async fn defer<A: Account>(items: &mut [Item<'_>], account: &Guarded<'_, A>) {
    let deferred: Vec<_> = with_step(items, Step::Defer).collect();
    let answers = account.change_visibility(&visibility_changes(&deferred)).await;
    for (item, answer) in deferred.into_iter().zip(answers) {
        // Kept either way: an early return finds the backoff unserved and waits on.
        item.outcome.problem = answer.err();
    }
}

async fn reinvoke<A: Account>(items: &mut [Item<'_>], account: &Guarded<'_, A>, policy: &Policy) {
    let due = stream::iter(with_step(items, Step::Reinvoke));
    due.for_each_concurrent(CONCURRENT_INVOKES, |item| async move {
        let (function_arn, envelope) = item.reinvocation();
        let answer = account.invoke(function_arn, envelope, policy.envelope).await;
        item.invoked(answer);
    })
    .await;
}

async fn dead_letter<A: Account>(items: &mut [Item<'_>], account: &Guarded<'_, A>, now: Timestamp) {
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
    let letters: Vec<&DeadLetter> = letters.iter().collect();
    for (item, answer) in given_up.into_iter().zip(account.send_dead_letters(&letters).await) {
        item.settle(answer);
    }
}

async fn hide_what_did_not_work<A: Account>(items: &mut [Item<'_>], account: &Guarded<'_, A>) {
    let mut failed: Vec<_> = items.iter_mut().filter(|item| item.failed).collect();
    for item in &mut failed {
        item.outcome.delay = Some(hiding(item.record));
    }
    let answers = account.change_visibility(&visibility_changes(&failed)).await;
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
