//! Messages that are kept: hidden while there is room for them, and moved otherwise.

use std::cmp::Reverse;

use super::guarded::Guarded;
use super::waiting::Waiting;
use crate::account::{Account, CallFailure, Move, MoveFailure, VisibilityChange};
use crate::report::Moves;
use crate::{Pauses, Policy, Room, Timestamp};

/// Said to an operator of moves that may have been accepted.
const LOST_COPY: &str = "the copies may be on their way, and the messages themselves come back in one to two hours at \
    the earliest: look for an outage of SQS or of the network";

/// Hides as many messages as there is room for. The others are those that cost the least to move.
pub(super) async fn hide_within<'w, 'a: 'w, A: Account>(
    room: &mut Room,
    waiting: impl Iterator<Item = &'w mut Waiting<'a>>,
    account: &Guarded<'_, A>,
) {
    let mut waiting: Vec<_> = waiting.filter(|message| message.is_due_to_wait()).collect();
    if room.left() < waiting.len() as u64 {
        waiting = dearest_to_move(waiting, room.left() as usize);
    }
    hide(room, waiting, account).await;
}

/// As many of the messages, and those that SQS would refuse to take again.
fn dearest_to_move<'w, 'a>(waiting: Vec<&'w mut Waiting<'a>>, most: usize) -> Vec<&'w mut Waiting<'a>> {
    let cost = |message: &Waiting<'_>| message.cost_of_moves().unwrap_or(u64::MAX);
    let mut by_cost: Vec<_> = waiting.into_iter().map(|message| (cost(message), message)).collect();
    by_cost.sort_by_key(|(cost, _)| Reverse(*cost));
    let cannot_move = by_cost.iter().filter(|(cost, _)| *cost == u64::MAX).count();
    by_cost.into_iter().map(|(_, message)| message).take(most.max(cannot_move)).collect()
}

async fn hide<'a, A: Account>(room: &mut Room, mut waiting: Vec<&mut Waiting<'a>>, account: &Guarded<'_, A>) {
    let changes: Vec<VisibilityChange<'_>> = waiting.iter().map(|message| message.change()).collect();
    let mut answers = account.change_visibility(&changes).await;
    for message in &mut waiting {
        message.hidden(answers.next_answer());
    }
    room.take(changes.len() as u64);
}

/// Moves the messages that there was no room for. One that cannot be sent is hidden after all.
pub(super) async fn move_others<'w, 'a: 'w, A: Account>(
    room: &mut Room,
    waiting: impl Iterator<Item = &'w mut Waiting<'a>>,
    account: &Guarded<'_, A>,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Moves {
    let waiting: Vec<_> = waiting.filter(|message| message.is_due_to_wait()).collect();
    let copies: Vec<Move<'_>> = waiting.iter().map(|message| message.copy()).collect();
    let mut answers = account.send_again(&copies).await;
    let mut moves = Moves::default();
    let mut failed = Vec::new();
    for (message, copy) in waiting.into_iter().zip(copies) {
        match answers.next_answer() {
            Ok(()) => {
                message.moved(copy.delay);
                moves.made += 1;
            }
            Err(failure) => {
                if let MoveFailure::Unanswered(_) = failure {
                    message.hide_after_lost_copy(policy, pauses, now);
                }
                failed.push(message);
                moves.failed += 1;
                moves.problem.get_or_insert(problem(failure));
            }
        }
    }
    hide(room, failed, account).await;
    moves
}

fn problem(failure: MoveFailure) -> CallFailure {
    match failure {
        MoveFailure::NotSent(problem) => problem,
        MoveFailure::Unanswered(cause) => CallFailure { cause, remedy: Some(LOST_COPY) },
    }
}

/// Looks how much room there is, if there is little.
pub(super) async fn look<A: Account>(
    room: &mut Room,
    now: Timestamp,
    account: &Guarded<'_, A>,
) -> Option<CallFailure> {
    if !room.is_low(now) {
        return None;
    }
    let look = account.look().await?;
    room.looked(&look, now);
    look.err()
}
