//! A running handler, which decides on an action for each message in a batch, performs it and reports the outcome.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::{self, StreamExt};

use crate::account::{
    Account, BatchAccount, CONCURRENT_INVOKES, CallFailure, DeadLettered, InvokeFailure, Move, MoveFailure,
    VisibilityChange, isolated,
};
use crate::arn::QueueArn;
use crate::batch_event::BatchEvent;
use crate::dead_letter::{Reason, ReasonCode};
use crate::decide::{Action, Case, expiring};
use crate::failed_event::FailedEvent;
use crate::known_pauses::KnownPauses;
use crate::message::{BatchMessage, Guard, Happened, State};
use crate::outcome::{Cause, Outcome};
use crate::pauses::Pauses;
use crate::policies::Policies;
use crate::record::Record;
use crate::report::{BatchReport, Moves, PausesRead};
use crate::room::Room;
use crate::time::Timestamp;
use crate::waits::{Wait, guard};

const UNANSWERED: &str = "it is repeated in one to two hours; look for an outage of Lambda or of the network";
const LOST_COPY: &str = "the copies may have been sent, so the originals return in one to two hours at the \
                         earliest; look for an outage of SQS or of the network";

/// One running handler (a Lambda execution environment): its policies, its [`Room`] for hidden messages, and the pauses
/// that it has read.
#[derive(Clone, Debug)]
pub struct Environment {
    policies: Arc<Policies>,
    queue_arn: Option<String>,
    room: Room,
    pauses: KnownPauses,
}

impl Environment {
    /// Creates an environment that has not handled a batch yet, and does not read pauses unless
    /// [`reading_pauses`](Self::reading_pauses) is called.
    pub fn new(policies: impl Into<Arc<Policies>>) -> Self {
        let policies = policies.into();
        let room = Room::of(policies.stack());
        Self { policies, queue_arn: None, room, pauses: KnownPauses::none() }
    }

    /// Makes the environment read the pauses from the SSM parameter that `PAUSES` names.
    #[must_use]
    pub fn reading_pauses(self) -> Self {
        Self { pauses: KnownPauses::of(self.policies.stack()), ..self }
    }

    /// The policies under which the environment retries events.
    pub const fn policies(&self) -> &Arc<Policies> {
        &self.policies
    }

    /// The pauses that the environment last read. `None` until a read succeeds. Empty if the environment never reads
    /// pauses.
    pub const fn pauses(&self) -> Option<&Pauses> {
        self.pauses.known()
    }

    /// Handles one batch: decides what to do with each message, then performs the actions, deferrals first and moves
    /// last. A message that has to wait is hidden, or [moved](crate::Move) if there is no room to hide it.
    ///
    /// Before its re-invocation or move, a message is hidden until one to two hours after the latest possible end of
    /// the batch. After a crash, neither action is repeated within an hour, except for a last retry before `MAX_AGE`.
    ///
    /// `past_deadline` is called before each AWS call. Once it returns true, no further call is started, and the
    /// remaining messages are reported as failed. Panics are caught, and affect only the messages concerned.
    ///
    /// While `TARGET_FUNCTIONS` is empty, every message is kept until shortly before SQS would delete it. If a message
    /// has no id, the whole batch is kept.
    pub async fn handle<'a, A: Account>(
        &mut self,
        batch: &'a BatchEvent,
        now: Timestamp,
        past_deadline: &dyn Fn() -> bool,
        account: &A,
    ) -> BatchReport<'a> {
        let mut report = BatchReport::new(batch);
        if report.kept_whole {
            return report;
        }
        self.enter_queue(batch.queue_arn.as_deref());
        let account = BatchAccount { account, past_deadline };
        let read = read_pauses(&mut self.pauses, &batch.records, now, &account);
        let first_count;
        let is_uncounted = self.room.is_unknown();
        (report.pauses, first_count) = join(read, count(is_uncounted, &mut self.room, now, &account)).await;
        // `Received` becomes `Wait`, `Invoke` or `DeadLetter`.
        let received = latest_copies(&batch.records);
        let mut messages: Vec<BatchMessage<'a>> =
            received.into_iter().map(|record| self.decide(record, now)).collect();
        // `Wait` becomes `Done` or, if there is no room, `Move`. The same call guards the messages in `Invoke` and
        // `Move`, so that none of them comes back soon if this handler crashes.
        choose_moves(&mut messages, self.room.left());
        report.unguarded = self.hide(&mut messages, now, &account).await;
        // `Invoke` becomes `Done`, `DeadLetter` or `Wait`.
        self.invoke(&mut messages, now, &account).await;
        // `DeadLetter` becomes `Done` or `Wait`.
        send_dead_letters(&mut messages, now, &account).await;
        // Each new `Wait` becomes `Done` or `Move`. Messages whose calls failed, or that could not be guarded, take
        // the remaining room. Each is hidden until its own wait ends, which replaces its guard.
        choose_moves(&mut messages, self.room.left());
        self.hide(&mut messages, now, &account).await;
        // `Move` becomes `Done` or, if the copy could not be sent, `Wait`.
        report.moves = self.move_others(&mut messages, now, &account).await;
        // Each `Wait` that is left becomes `Done`: what could not be moved is hidden although there is no room.
        self.hide(&mut messages, now, &account).await;
        let last_count = count(self.room.is_low(now), &mut self.room, now, &account).await;
        report.count_failure = first_count.or(last_count);
        report.outcomes = messages.into_iter().map(|message| self.outcome(message)).collect();
        report
    }

    fn enter_queue(&mut self, queue_arn: Option<&str>) {
        let Some(arn) = queue_arn.filter(|arn| self.queue_arn.as_deref() != Some(*arn)) else { return };
        if self.queue_arn.replace(arn.into()).is_some() {
            self.room = self.room.unknown();
        }
        if let Ok(queue) = arn.parse::<QueueArn>()
            && !self.policies.entries().is_empty()
        {
            self.policies = Arc::new(Policies::clone(&self.policies).in_queue(&queue));
        }
    }

    fn decide<'a>(&self, record: &'a Record, now: Timestamp) -> BatchMessage<'a> {
        let mut message = BatchMessage::received(record);
        let read = isolated(|| FailedEvent::read(record));
        let read = read.map(|read| read.map(|event| message.event = Some(event.under(&self.policies))));
        if let Some(wait) = Wait::carried(record, now) {
            message.keep(Cause::WaitGoesOn, None, wait);
            return message;
        }
        // The age counts from when the original was sent, because a copy is a new message.
        let expiring = expiring(record, record.first_sent(), now);
        if self.policies.stack().keeps_everything() {
            message.keep_unless(expiring, Cause::Unattached, None, now);
            return message;
        }
        let decided = read.and_then(|read| match read {
            Ok(()) => isolated(|| self.case(&message, now)?.decide()),
            Err(reason) => Ok(Some(Action::DeadLetter { reason })),
        });
        match decided {
            Ok(Some(action)) => message.decided(action, now),
            Ok(None) => message.keep_unless(None, Cause::PausesUnknown, None, now),
            Err(panic) => message.keep_unless(expiring, Cause::Undecided, Some(panic), now),
        }
        message
    }

    /// Hides the waiting messages, and [guards](Self::guard) each message before its re-invocation or move. Returns the
    /// first failure to guard a message that is about to be re-invoked.
    async fn hide<A: Account>(
        &mut self,
        messages: &mut [BatchMessage<'_>],
        now: Timestamp,
        account: &BatchAccount<'_, A>,
    ) -> Option<CallFailure> {
        let changes = messages.iter().filter_map(|message| {
            let visibility_timeout = self.hiding(message, now)?;
            Some(VisibilityChange { record: message.record, visibility_timeout })
        });
        let changes: Vec<VisibilityChange<'_>> = changes.collect();
        let mut answers = account.change_visibility(&changes).await;
        let mut unguarded = None;
        for message in messages {
            let Some(answer) = answers.remove(&message.record.message_id) else { continue };
            if let State::Wait { .. } = message.state {
                self.room.take(1);
                message.next(Happened::Hidden(answer));
                continue;
            }
            if let (State::Invoke { .. }, Err(failure)) = (&message.state, &answer) {
                unguarded.get_or_insert_with(|| failure.clone());
            }
            // A guarded message takes no room yet. It either leaves the queue, or is hidden again and takes room then.
            message.next(Happened::Guarded(answer));
        }
        // After the deadline, no `Invoke` is made, so no guard is missing.
        unguarded.filter(|_| !(account.past_deadline)())
    }

    /// The visibility timeout that a message needs now; `None` if it does not need to be hidden.
    fn hiding(&self, message: &BatchMessage<'_>, now: Timestamp) -> Option<Duration> {
        match &message.state {
            State::Wait { wait, .. } => Some(wait.visibility_timeout),
            State::Invoke { .. } if message.guard == Guard::NotTried => Some(self.guard(message, now)),
            State::Move { wait, .. } if message.guard == Guard::NotTried => {
                Some(wait.visibility_timeout.max(self.guard(message, now)))
            }
            _ => None,
        }
    }

    /// Returns the visibility timeout to set before a re-invocation or move, because that call may succeed even if no
    /// response arrives. The timeout usually ends one to two hours after the batch.
    fn guard(&self, message: &BatchMessage<'_>, now: Timestamp) -> Duration {
        let (record, case) = (message.record, self.case(message, now));
        isolated(|| guard(record, case.as_ref())).unwrap_or_else(|_| guard(record, None))
    }

    /// Returns everything that the decision about a message depends on, or `None` if the message could not be parsed.
    fn case<'c, 'r>(&'c self, message: &'c BatchMessage<'r>, now: Timestamp) -> Option<Case<'c, 'r>> {
        let BatchMessage { record, event, .. } = message;
        let event = event.as_ref()?;
        let policy = self.policies.of(&event.function_arn);
        Some(Case { event, record, policy, pauses: self.pauses(), now })
    }

    async fn invoke<A: Account>(
        &self,
        messages: &mut [BatchMessage<'_>],
        now: Timestamp,
        account: &BatchAccount<'_, A>,
    ) {
        let calls = messages.iter().filter_map(|message| {
            let BatchMessage { record, event: Some(event), state: State::Invoke { envelope, .. }, .. } =
                message
            else {
                return None;
            };
            let style = self.policies.of(&event.function_arn).settings().envelope;
            let call = account.invoke(record, &event.function_arn, envelope, style);
            Some(async { (record.message_id.clone(), call.await) })
        });
        let calls: Vec<_> = calls.collect();
        let mut answers: HashMap<_, _> =
            stream::iter(calls).buffer_unordered(CONCURRENT_INVOKES).collect().await;
        for message in messages {
            match answers.remove(&message.record.message_id) {
                Some(Ok(request_id)) => message.next(Happened::Reinvoked(request_id)),
                Some(Err(failure)) => self.not_invoked(message, failure, now),
                None => {}
            }
        }
    }

    fn not_invoked(&self, message: &mut BatchMessage<'_>, failure: InvokeFailure, now: Timestamp) {
        let later = Wait::after_failure(message.record, now);
        let mut rejected = |code, detail: String| message.dead_letter(Reason::new(code, detail), now);
        let (cause, failure, wait) = match failure {
            InvokeFailure::Later(failure) => (Cause::Refused, failure, later),
            InvokeFailure::NotSent(failure) => (Cause::NotSent, failure, later),
            // Lambda may have accepted the event, so it must not be re-invoked soon.
            InvokeFailure::Unanswered(cause) => {
                let wait = self.case(message, now).map_or(later, |case| Wait::after_unanswered(&case));
                (Cause::Unanswered, CallFailure { cause, remedy: Some(UNANSWERED.into()) }, wait)
            }
            InvokeFailure::NotFound(detail) => return rejected(ReasonCode::TargetNotFound, detail),
            InvokeFailure::TooLarge(detail) => return rejected(ReasonCode::PayloadTooLarge, detail),
            InvokeFailure::Refused(detail) => return rejected(ReasonCode::TargetRefused, detail),
        };
        message.next(Happened::Failed { cause, failure, wait });
    }

    /// Moves the messages that the environment has no room to hide.
    async fn move_others<A: Account>(
        &self,
        messages: &mut [BatchMessage<'_>],
        now: Timestamp,
        account: &BatchAccount<'_, A>,
    ) -> Moves {
        let copies: Vec<Move<'_>> = messages.iter().filter_map(BatchMessage::copy).collect();
        let mut answers = account.send_again(&copies).await;
        let mut moves = Moves::default();
        for message in messages {
            let Some(answer) = answers.remove(&message.record.message_id) else { continue };
            let (problem, at_least) = match answer {
                Ok(()) => {
                    message.next(Happened::Moved);
                    moves.made += 1;
                    continue;
                }
                Err(MoveFailure::NotSent(problem)) => (problem, Duration::ZERO),
                Err(MoveFailure::Unanswered(cause)) => {
                    (CallFailure { cause, remedy: Some(LOST_COPY.into()) }, self.guard(message, now))
                }
            };
            message.next(Happened::NotMoved { at_least });
            moves.failed += 1;
            moves.problem.get_or_insert(problem);
        }
        moves
    }

    fn outcome<'a>(&self, message: BatchMessage<'a>) -> Outcome<'a> {
        let BatchMessage { record, event, state: State::Done(what, location), .. } = message else {
            panic!("BUG: a message has neither left the queue nor been kept");
        };
        let event = event.filter(|_| what.names_its_event());
        let entry = event.as_ref().and_then(|event| self.policies.entry_of(&event.function_arn));
        Outcome { record, policy: entry.map(|entry| entry.pattern().into()), event, what, location }
    }
}

/// Returns the last delivery of each message in a batch, because only the last receipt handle is valid.
fn latest_copies(records: &[Record]) -> Vec<&Record> {
    // A replay may handle a whole file as one batch, so the search must not be linear.
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

/// If there is not enough room to hide all the waiting messages, selects those that are cheapest to move.
fn choose_moves(messages: &mut [BatchMessage<'_>], room: u64) {
    let waiting = messages.iter().filter(|message| matches!(message.state, State::Wait { .. }));
    if waiting.count() as u64 <= room {
        return;
    }
    let costs = messages.iter().map(BatchMessage::cost_of_moves).enumerate();
    let mut costs: Vec<(usize, u64)> = costs.filter_map(|(index, cost)| Some((index, cost?))).collect();
    costs.sort_by_key(|(_, cost)| Reverse(*cost));
    for (index, cost) in costs.into_iter().skip(room as usize) {
        if cost < u64::MAX {
            messages[index].next(Happened::NoRoom);
        }
    }
}

async fn send_dead_letters<A: Account>(
    messages: &mut [BatchMessage<'_>],
    now: Timestamp,
    account: &BatchAccount<'_, A>,
) {
    let dead_lettered = messages.iter().filter_map(|message| match &message.state {
        State::DeadLetter { dead_letter, .. } => Some(DeadLettered { record: message.record, dead_letter }),
        _ => None,
    });
    let dead_lettered: Vec<DeadLettered<'_>> = dead_lettered.collect();
    let mut answers = account.send_dead_letters(&dead_lettered).await;
    for message in messages {
        let Some(answer) = answers.remove(&message.record.message_id) else { continue };
        let wait = Wait::after_failure(message.record, now);
        let failed = |failure| Happened::Failed { cause: Cause::DeadLetterNotSent, failure, wait };
        message.next(answer.map_or_else(failed, |()| Happened::DeadLettered));
    }
}

async fn read_pauses<A: Account>(
    pauses: &mut KnownPauses,
    records: &[Record],
    now: Timestamp,
    account: &BatchAccount<'_, A>,
) -> Option<PausesRead> {
    let first = records.first().filter(|_| pauses.is_due(now))?;
    let answer = account.read_pauses().await?;
    Some(pauses.read(answer, now, &first.message_id))
}

/// Counts the queue's messages in flight if `is_due` is true, and records the count in `room`.
async fn count<A: Account>(
    is_due: bool,
    room: &mut Room,
    now: Timestamp,
    account: &BatchAccount<'_, A>,
) -> Option<CallFailure> {
    if !is_due {
        return None;
    }
    let count = account.count_in_flight().await?;
    room.counted(&count, now);
    count.err()
}
