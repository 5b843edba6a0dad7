//! One batch of the retry queue, from records to the report its response is made of.
//!
//! | file | holds |
//! |---|---|
//! | `decided`, `answered` | a message on its way: its steps, and what may follow each |
//! | `guarded` | no call past the deadline, an answer for each entry |
//! | `hiding` | how long a message is hidden whose step did not work |

mod answered;
mod decided;
mod guarded;
mod hiding;

use std::collections::HashMap;

use futures_util::stream::{self, StreamExt};

use self::answered::{Answered, Sent};
use self::decided::Decided;
use self::guarded::{CONCURRENT_INVOKES, Guarded};
use crate::account::{Account, VisibilityChange};
use crate::dead_letter::DeadLetter;
use crate::report::{BatchReport, Outcome};
use crate::{Policy, Record, Timestamp};

/// Handles one batch: decides for each record, then performs, deferrals first. While `TARGET_FUNCTIONS` is
/// empty, every message is kept and hidden, until SQS would soon delete it.
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
    let account = Guarded { account, past_deadline };
    let records = latest_copies(records).into_iter();
    let mut decided: Vec<Decided<'a>> = records.map(|record| Decided::of(record, policy, now)).collect();
    defer(&mut decided, &account).await;
    let answered = reinvoke(decided, &account, policy, now).await;
    let sent = send_dead_letters(answered, &account).await;
    BatchReport { outcomes: hide_failed(sent, &account).await }
}

/// SQS may deliver a message twice in one batch. The copies are one event, so one of them is
/// handled: the later, whose receipt handle is the valid one.
fn latest_copies(records: &[Record]) -> Vec<&Record> {
    let mut index_of: HashMap<&str, usize> = HashMap::with_capacity(records.len());
    let mut latest: Vec<&Record> = Vec::with_capacity(records.len());
    for record in records {
        let index = *index_of.entry(&record.message_id).or_insert(latest.len());
        match latest.get_mut(index) {
            None => latest.push(record),
            Some(kept) if record.receive_count >= kept.receive_count => *kept = record,
            Some(_) => {}
        }
    }
    latest
}

async fn defer<A: Account>(decided: &mut [Decided<'_>], account: &Guarded<'_, A>) {
    let mut deferrals: Vec<_> = decided
        .iter_mut()
        .filter_map(|message| match message {
            Decided::Defer(deferral) => Some(deferral),
            _ => None,
        })
        .collect();
    let changes: Vec<VisibilityChange<'_>> = deferrals.iter().map(|deferral| deferral.change()).collect();
    let mut answers = account.change_visibility(&changes).await;
    for deferral in &mut deferrals {
        deferral.answered(answers.next_answer());
    }
}

async fn reinvoke<'a, A: Account>(
    decided: Vec<Decided<'a>>,
    account: &Guarded<'_, A>,
    policy: &Policy,
    now: Timestamp,
) -> Vec<Answered<'a>> {
    let calls = decided.into_iter().map(async |message| match message {
        Decided::Defer(deferral) => Answered::Ended(deferral.outcome()),
        Decided::Reinvoke(reinvocation) => reinvocation.invoke(account, policy, now).await,
        Decided::Neither(answered) => answered,
    });
    stream::iter(calls).buffered(CONCURRENT_INVOKES).collect().await
}

async fn send_dead_letters<'a, A: Account>(
    answered: Vec<Answered<'a>>,
    account: &Guarded<'_, A>,
) -> Vec<Sent<'a>> {
    let letters: Vec<&DeadLetter> = answered
        .iter()
        .filter_map(|message| match message {
            Answered::DeadLetter(given_up) => Some(&given_up.letter),
            _ => None,
        })
        .collect();
    let mut answers = account.send_dead_letters(&letters).await;
    let sent = answered.into_iter().map(|message| match message {
        Answered::Ended(outcome) => Sent::Ended(outcome),
        Answered::DeadLetter(given_up) => given_up.answered(answers.next_answer()),
        Answered::Failed(failed) => Sent::Failed(failed),
    });
    sent.collect()
}

async fn hide_failed<'a, A: Account>(sent: Vec<Sent<'a>>, account: &Guarded<'_, A>) -> Vec<Outcome<'a>> {
    let changes: Vec<VisibilityChange<'_>> = sent
        .iter()
        .filter_map(|message| match message {
            Sent::Failed(failed) => Some(failed.change()),
            Sent::Ended(_) => None,
        })
        .collect();
    let mut answers = account.change_visibility(&changes).await;
    let outcomes = sent.into_iter().map(|message| match message {
        Sent::Ended(outcome) => outcome,
        Sent::Failed(failed) => failed.answered(answers.next_answer()),
    });
    outcomes.collect()
}
