//! One batch of the retry queue, from records to the report its response is made of.
//!
//! | file | holds |
//! |---|---|
//! | `decided`, `answered` | a message on its way: its steps, and what may follow each |
//! | `keeping` | messages that are kept: hidden, or moved where there is no room; and the look for room |
//! | `waiting`, `hop` | a message that is kept, and its hops |
//! | `hiding` | how long a message waits whose step did not work |
//! | `guarded` | no call past the deadline, an answer for each entry |
//!
//! What an environment knows of pauses is brought up to date before anything is decided. A new one counts the
//! messages in flight meanwhile.

mod answered;
mod decided;
mod guarded;
mod hiding;
mod hop;
mod keeping;
mod waiting;

use std::collections::HashMap;

use futures_util::future::join;
use futures_util::stream::{self, StreamExt};

use self::answered::{Answered, Sent};
use self::decided::Decided;
use self::guarded::{CONCURRENT_INVOKES, Guarded};
use self::keeping::{hide_within, look, move_others};
use crate::account::{Account, CallFailure};
use crate::dead_letter::DeadLetter;
use crate::pauses::NO_PAUSES;
use crate::report::{BatchReport, PausesRead};
use crate::{KnownPauses, Pauses, Policy, Record, Room, Timestamp};

/// Handles one batch: decides for each record, then performs, deferrals first. While `TARGET_FUNCTIONS` is
/// empty, every message is kept, until SQS would soon delete it.
///
/// The events of a function that is paused are held, as far as the environment knows its `pauses`. It reads
/// them first, if that is due.
///
/// A message that has to wait is hidden while the environment has `room` for it. Otherwise it is moved: sent
/// again with a delay, and settled. Moves come last. A look at the queue comes after the moves if `room` is
/// low. A new environment looks before anything else too, while it reads the pauses: neither depends on the
/// other, and the batch waits for both.
///
/// `past_deadline` is asked before each call. Once it answers true no further call is started; what
/// is left is reported failed and comes back. Nothing a record holds, and nothing the account does,
/// can harm another record: each is decided and performed apart, panics included.
pub async fn handle_batch<'a, A: Account>(
    records: &'a [Record],
    policy: &Policy,
    now: Timestamp,
    past_deadline: &dyn Fn() -> bool,
    pauses: &mut KnownPauses,
    room: &mut Room,
    account: &A,
) -> BatchReport<'a> {
    let account = Guarded { account, past_deadline };
    let reads = join(read_pauses(pauses, records, now, &account), first_look(room, now, &account));
    let (pauses_read, first_look) = reads.await;
    let known = pauses.known();
    let records = latest_copies(records).into_iter();
    let mut decided: Vec<Decided<'a>> =
        records.map(|record| Decided::of(record, policy, known, now)).collect();
    let pauses = known.unwrap_or(&NO_PAUSES);
    hide_within(room, decided.iter_mut().filter_map(Decided::waiting), &account).await;
    let answered = reinvoke(decided, &account, policy, pauses, now).await;
    let mut sent = send_dead_letters(answered, &account).await;
    hide_within(room, sent.iter_mut().filter_map(Sent::waiting), &account).await;
    let waiting = sent.iter_mut().filter_map(Sent::waiting);
    let moves = move_others(room, waiting, &account, policy, pauses, now).await;
    let last_look = look(room, now, &account).await;
    BatchReport {
        outcomes: sent.into_iter().map(Sent::outcome).collect(),
        moves,
        look_failure: first_look.or(last_look),
        pauses: pauses_read,
    }
}

async fn read_pauses<A: Account>(
    pauses: &mut KnownPauses,
    records: &[Record],
    now: Timestamp,
    account: &Guarded<'_, A>,
) -> Option<PausesRead> {
    let first = records.first().filter(|_| pauses.is_due(now))?;
    let answer = account.read_pauses().await?;
    Some(pauses.read(answer, now, &first.message_id))
}

async fn first_look<A: Account>(
    room: &mut Room,
    now: Timestamp,
    account: &Guarded<'_, A>,
) -> Option<CallFailure> {
    if room.is_unknown() { look(room, now, account).await } else { None }
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

async fn reinvoke<'a, A: Account>(
    decided: Vec<Decided<'a>>,
    account: &Guarded<'_, A>,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Vec<Answered<'a>> {
    let mut calls = Vec::new();
    let kept = decided.into_iter().map(|message| match message {
        Decided::Waits(waiting) => Some(Answered::Waits(waiting)),
        Decided::Neither(answered) => Some(answered),
        Decided::Reinvoke(reinvocation) => {
            calls.push(reinvocation.invoke(account, policy, pauses, now));
            None
        }
    });
    let kept: Vec<Option<Answered<'a>>> = kept.collect();
    let mut invoked = stream::iter(calls).buffered(CONCURRENT_INVOKES).collect::<Vec<_>>().await.into_iter();
    let answered = kept.into_iter().map(|kept| kept.or_else(|| invoked.next()));
    answered.map(|answered| answered.expect("BUG: a re-invocation without an answer")).collect()
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
        Answered::Waits(waiting) => Sent::Waits(waiting),
    });
    sent.collect()
}
