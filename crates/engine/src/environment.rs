//! One running handler, and the path of a message through a batch: decide, perform, report the outcome.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::{self, StreamExt};

use crate::account::{
    Account, Answer, CONCURRENT_INVOKES, CallFailure, GivenUp, Guarded, InvokeFailure, Move, MoveFailure,
    VisibilityChange,
};
use crate::batch_event::BatchEvent;
use crate::dead_letter::{DeadLetter, Reason, ReasonCode, SQS_MESSAGE_BYTES};
use crate::decide::{Action, decide, expiring};
use crate::due::Case;
use crate::failed_event::FailedEvent;
use crate::isolated::isolated;
use crate::known_pauses::KnownPauses;
use crate::pauses::NO_PAUSES;
use crate::record::Moved;
use crate::report::{BatchReport, Cause, Moves, Outcome, PausesRead, Retry, Step};
use crate::waits::{Wait, guard};
use crate::{Envelope, Pauses, Policies, QueueArn, Record, Room, Timestamp};

/// Remedy for a re-invocation that may have been accepted.
const UNANSWERED: &str =
    "it is made again in one to two hours: look for an outage of Lambda or of the network";
/// Remedy for moves that may have been accepted.
const LOST_COPY: &str = "the copies may be on their way, and the messages themselves come back in one to two hours at \
    the earliest: look for an outage of SQS or of the network";

/// One running handler: its policies, its room for hidden messages, and the pauses it knows of.
///
/// It serves one queue. When a batch comes from another one, its room is unknown again.
#[derive(Clone, Debug)]
pub struct Environment {
    policies: Arc<Policies>,
    queue_arn: Option<String>,
    room: Room,
    pauses: KnownPauses,
}

impl Environment {
    /// An environment that has handled nothing yet, and reads no pauses: no function is ever paused.
    pub fn new(policies: impl Into<Arc<Policies>>) -> Self {
        let policies = policies.into();
        let room = Room::of(policies.stack());
        Self { policies, queue_arn: None, room, pauses: KnownPauses::none() }
    }

    /// The same, but it reads the pauses from a parameter.
    #[must_use]
    pub fn reading_pauses(self) -> Self {
        Self { pauses: KnownPauses::of(self.policies.stack()), ..self }
    }

    /// The policies that it follows.
    pub const fn policies(&self) -> &Arc<Policies> {
        &self.policies
    }

    /// The pauses that it knows of; `None` while it has read none.
    pub const fn pauses(&self) -> Option<&Pauses> {
        self.pauses.known()
    }

    /// Handles one batch: decides for each message, then performs, deferrals first. While `TARGET_FUNCTIONS` is empty, every
    /// message is kept until shortly before SQS would delete it. If a message has no id, the whole batch is kept.
    ///
    /// Messages about to be re-invoked or moved are first hidden for at least one to two hours, in the same call as the
    /// deferrals. If this handler dies after its calls, none of them is repeated within the hour, except for a last retry
    /// before `MAX_AGE` ends.
    ///
    /// The pauses are read first, if that is due; events of a paused function are held.
    ///
    /// A message that has to wait is hidden while the environment has room for it. Otherwise it is moved: sent again with
    /// a delay, and settled. Moves come last, and after them a look at the queue if there is little room. A new
    /// environment also looks first, while it reads the pauses.
    ///
    /// `past_deadline` is asked before each call. Once it answers true no further call is started; what is left is
    /// reported failed and comes back. No record, and no failure of the account, can harm another record: each is decided
    /// and performed by itself, and its panics are caught.
    pub async fn handle<'a, A: Account>(
        &mut self,
        batch: &'a BatchEvent,
        now: Timestamp,
        past_deadline: &dyn Fn() -> bool,
        account: &A,
    ) -> BatchReport<'a> {
        let mut report = BatchReport::new(batch);
        if report.kept_whole.is_some() {
            return report;
        }
        self.enter_queue(batch.queue_arn.as_deref());
        let account = Guarded { account, past_deadline };
        let read = read_pauses(&mut self.pauses, &batch.records, now, &account);
        let first_look;
        (report.pauses, first_look) = join(read, first_look_of(&mut self.room, now, &account)).await;
        let mut messages: Vec<Message<'a>> =
            latest_copies(&batch.records).into_iter().map(|record| self.decide(record, now)).collect();
        let first_hiding = self.hide_within_room(&mut messages, now, &account).await;
        self.invoke(&mut messages, now, &account).await;
        send_dead_letters(&mut messages, now, &account).await;
        let second_hiding = self.hide_within_room(&mut messages, now, &account).await;
        report.unguarded = first_hiding.or(second_hiding);
        report.moves = self.move_others(&mut messages, now, &account).await;
        let last_look = look(&mut self.room, now, &account).await;
        report.look_failure = first_look.or(last_look);
        report.outcomes = messages.into_iter().map(|message| message.outcome).collect();
        for retry in report.outcomes.iter_mut().filter_map(|outcome| outcome.retry.as_mut()) {
            retry.policy = self.policies.entry_of(&retry.function_arn).map(|entry| entry.pattern().into());
        }
        report
    }

    fn enter_queue(&mut self, queue_arn: Option<&str>) {
        let Some(arn) = queue_arn else { return };
        if self.queue_arn.as_deref().is_some_and(|before| before != arn) {
            self.room = self.room.unknown();
        }
        if self.queue_arn.as_deref() != Some(arn) {
            self.queue_arn = Some(arn.into());
            if let Ok(queue) = arn.parse::<QueueArn>() {
                Policies::enter_queue(&mut self.policies, &queue);
            }
        }
    }

    /// Until the pauses have been read, any function may be paused, so a message is kept if its action depends on that.
    fn decide<'a>(&self, record: &'a Record, now: Timestamp) -> Message<'a> {
        let mut message = Message::new(record);
        if let Some(wait) = Wait::carried(record, now) {
            message.keep(wait, Cause::WaitGoesOn);
        } else if self.policies.stack().keeps_everything() {
            message.keep_unattached(now);
        } else {
            let known = self.pauses();
            match isolated(|| decide(record, &self.policies, known.unwrap_or(&NO_PAUSES), now)) {
                Ok(action) if known.is_none() && depends_on_pauses(&action, record, now) => {
                    message.outcome.retry = action.event().map(Retry::of);
                    message.keep(Wait::after_failure(record, now), Cause::PausesUnknown);
                }
                Ok(action) => message.take_on(action, now),
                Err(problem) => message.keep_undecided(problem, now),
            }
        }
        message
    }

    /// Hides as many waiting messages as there is room for, and picks the rest, the cheapest to move, for moving.
    async fn hide_within_room<A: Account>(
        &mut self,
        messages: &mut [Message<'_>],
        now: Timestamp,
        account: &Guarded<'_, A>,
    ) -> Option<CallFailure> {
        choose_moves(messages, self.room.left());
        self.hide(messages, now, account).await
    }

    /// Hides what waits, and guards what is about to be re-invoked or moved: one call for all. A message whose guard failed
    /// is re-invoked anyway, but not moved: it would return after the queue's own timeout beside its copy. Returns the first
    /// failure to guard a re-invocation.
    async fn hide<A: Account>(
        &mut self,
        messages: &mut [Message<'_>],
        now: Timestamp,
        account: &Guarded<'_, A>,
    ) -> Option<CallFailure> {
        let hiding = messages.iter_mut().filter_map(|message| Some((self.hiding(message, now)?, message)));
        let hiding: Vec<(Duration, &mut Message<'_>)> = hiding.collect();
        let change = hiding.iter().map(|(timeout, message)| VisibilityChange {
            record: message.record,
            visibility_timeout: *timeout,
        });
        let changes: Vec<VisibilityChange<'_>> = change.collect();
        let mut answers = account.change_visibility(&changes).await;
        let mut unguarded = None;
        for (timeout, message) in hiding {
            let answer = answers.next_answer();
            match message.next {
                Next::Wait(_) => {
                    message.hidden(timeout, answer);
                    self.room.take(1);
                }
                // It will leave the queue, or be hidden again and take room then.
                _ => {
                    message.guarded(answer.is_ok());
                    unguarded =
                        unguarded.or(answer.err().filter(|_| matches!(message.next, Next::Invoke(_))));
                }
            }
        }
        // Past the deadline, no call is made that would need a guard.
        unguarded.filter(|_| !(account.past_deadline)())
    }

    /// How long the message is to be hidden now, if at all.
    fn hiding(&self, message: &Message<'_>, now: Timestamp) -> Option<Duration> {
        match &message.next {
            Next::Wait(wait) => Some(wait.visibility_timeout),
            Next::Invoke(_) if message.guard == Guard::NotTried => Some(self.guard(message, now)),
            Next::Move(wait) if message.guard == Guard::NotTried => {
                Some(wait.visibility_timeout.max(self.guard(message, now)))
            }
            _ => None,
        }
    }

    /// One to two hours, counted from the latest end of this batch. The call may be accepted without any handler learning of
    /// it, and every accepted copy starts its own chain.
    fn guard(&self, message: &Message<'_>, now: Timestamp) -> Duration {
        let record = message.record;
        let read = match &message.event {
            Some(_) => None,
            None => isolated(|| FailedEvent::read(record).ok()).ok().flatten(),
        };
        let event = message.event.as_ref().or(read.as_ref());
        let case = event.map(|event| self.case(event, record, now));
        isolated(|| guard(record, case.as_ref())).unwrap_or_else(|_| guard(record, None))
    }

    fn case<'c, 'r>(
        &'c self,
        event: &'c FailedEvent<'r>,
        record: &'c Record,
        now: Timestamp,
    ) -> Case<'c, 'r> {
        let Self { policies, .. } = self;
        let pauses = self.pauses().unwrap_or(&NO_PAUSES);
        Case { event, record, policy: policies.of(&event.function_arn), pauses, now }
    }

    async fn invoke<'a, A: Account>(
        &self,
        messages: &mut [Message<'a>],
        now: Timestamp,
        account: &Guarded<'_, A>,
    ) {
        let calls = messages.iter().filter_map(|message| match (&message.event, &message.next) {
            (Some(event), Next::Invoke(envelope)) => {
                let style = self.policies.of(&event.function_arn).settings().envelope;
                Some(account.invoke(message.record, &event.function_arn, envelope, style))
            }
            _ => None,
        });
        let calls: Vec<_> = calls.collect();
        let answers = stream::iter(calls).buffered(CONCURRENT_INVOKES).collect::<Vec<_>>().await;
        let invoked = messages.iter_mut().filter(|message| matches!(message.next, Next::Invoke(_)));
        for (message, answer) in invoked.zip(answers) {
            match answer {
                Ok(request_id) => message.invoked(request_id),
                Err(InvokeFailure::Later(problem)) => message.failed(problem, Cause::Refused, now),
                Err(InvokeFailure::NotSent(problem)) => message.failed(problem, Cause::NotSent, now),
                Err(InvokeFailure::Unanswered(cause)) => self.wait_for_answer(message, cause, now),
                Err(InvokeFailure::NotFound(cause)) => {
                    message.give_up(Reason::new(ReasonCode::TargetNotFound, cause), now);
                }
                Err(InvokeFailure::TooLarge(cause)) => {
                    message.give_up(Reason::new(ReasonCode::PayloadTooLarge, cause), now);
                }
                Err(InvokeFailure::Refused(cause)) => {
                    message.give_up(Reason::new(ReasonCode::TargetRefused, cause), now);
                }
            }
        }
    }

    /// The event may have been accepted, so it must not be re-invoked soon.
    fn wait_for_answer(&self, message: &mut Message<'_>, cause: String, now: Timestamp) {
        let Message { record, event: Some(event), .. } = &*message else { return };
        let wait = Wait::after_unanswered(&self.case(event, record, now));
        message.outcome.kept = Some(Cause::Unanswered);
        message.outcome.problem = Some(CallFailure { cause, remedy: Some(UNANSWERED.into()) });
        message.next = Next::Wait(wait);
    }

    /// Moves the messages that there was no room for. One that cannot be sent is hidden after all.
    async fn move_others<A: Account>(
        &mut self,
        messages: &mut [Message<'_>],
        now: Timestamp,
        account: &Guarded<'_, A>,
    ) -> Moves {
        let copies: Vec<Move<'_>> = messages.iter().filter_map(Message::copy).collect();
        let mut answers = account.send_again(&copies).await;
        let mut moves = Moves::default();
        for (message, copy) in moving(messages).zip(copies) {
            let problem = match answers.next_answer() {
                Ok(()) => {
                    message.moved(&copy);
                    moves.made += 1;
                    continue;
                }
                Err(MoveFailure::NotSent(problem)) => {
                    message.stay(Duration::ZERO);
                    problem
                }
                Err(MoveFailure::Unanswered(cause)) => {
                    message.stay(self.guard(message, now));
                    CallFailure { cause, remedy: Some(LOST_COPY.into()) }
                }
            };
            moves.failed += 1;
            moves.problem.get_or_insert(problem);
        }
        self.hide(messages, now, account).await;
        moves
    }
}

/// A message on its way through a batch.
struct Message<'a> {
    record: &'a Record,
    /// `None` if it could not be parsed, or was not looked into.
    event: Option<FailedEvent<'a>>,
    /// The decision and its result so far.
    outcome: Outcome<'a>,
    next: Next<'a>,
    guard: Guard,
}

/// Whether the handler has hidden a message for one to two hours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    NotTried,
    Hidden,
    Failed,
}

/// What is still to be performed for a message.
enum Next<'a> {
    Nothing,
    /// Keep it: its backoff is not over, or its action failed.
    Wait(Wait),
    /// Keep it, by sending a copy in its place: there is no room to hide it.
    Move(Wait),
    Invoke(Envelope<'a>),
    SendDeadLetter(DeadLetter),
}

// Decided.
impl<'a> Message<'a> {
    fn new(record: &'a Record) -> Self {
        Self {
            record,
            event: None,
            outcome: Outcome::of(record),
            next: Next::Nothing,
            guard: Guard::NotTried,
        }
    }

    fn take_on(&mut self, action: Action<'a>, now: Timestamp) {
        self.outcome.retry = action.event().map(Retry::of);
        match action {
            Action::Defer { event, due, visibility_timeout, due_by, early } => {
                self.event = Some(event);
                self.outcome.due_by = Some(due_by);
                self.outcome.early = early;
                self.outcome.step = Some(Step::Defer { due, visibility_timeout });
                self.next = Next::Wait(Wait { visibility_timeout, left: due.since(now), not_before: None });
            }
            Action::Hold { event, due, visibility_timeout } => {
                self.event = Some(event);
                self.outcome.step = Some(Step::Hold { due, visibility_timeout });
                self.next = Next::Wait(Wait::from(now, visibility_timeout));
            }
            Action::Reinvoke { event, due, early, envelope } => {
                self.event = Some(event);
                self.outcome.early = early;
                self.outcome.step = Some(Step::Reinvoke { due });
                self.next = Next::Invoke(envelope);
            }
            Action::DeadLetter { event, reason } => {
                self.event = event;
                self.give_up(reason, now);
            }
        }
    }

    /// Kept without a decision.
    fn keep(&mut self, wait: Wait, cause: Cause) {
        self.outcome.kept = Some(cause);
        self.outcome.step = Some(Step::Keep { visibility_timeout: wait.visibility_timeout });
        self.next = Next::Wait(wait);
    }

    /// No function may be re-invoked yet. The message waits as after a failed action, so that 1,000 receives outlast SQS's
    /// 14 days. Shortly before these end, it is given up.
    fn keep_unattached(&mut self, now: Timestamp) {
        // Counts from the first sending: each copy is a new message, and would be kept forever.
        match expiring(self.record, self.record.first_sent(), now) {
            Some(reason) => {
                self.event = isolated(|| FailedEvent::read(self.record).ok()).ok().flatten();
                self.outcome.retry = self.event.as_ref().map(Retry::of);
                self.give_up(reason, now);
            }
            None => self.keep(Wait::after_failure(self.record, now), Cause::Unattached),
        }
    }

    /// Deciding has panicked.
    fn keep_undecided(&mut self, problem: CallFailure, now: Timestamp) {
        match expiring(self.record, self.record.first_sent(), now) {
            Some(reason) => self.give_up(reason, now),
            None => self.failed(problem, Cause::Undecided, now),
        }
    }

    fn give_up(&mut self, reason: Reason, now: Timestamp) {
        let letter = isolated(|| match &self.event {
            Some(event) => event.dead_letter(self.record, &reason, now),
            None => DeadLetter::verbatim(self.record, &reason),
        });
        self.outcome.step = Some(Step::DeadLetter { due: self.outcome.due(), reason });
        match letter {
            Ok(letter) => self.next = Next::SendDeadLetter(letter),
            Err(problem) => self.failed(problem, Cause::DeadLetterNotSent, now),
        }
    }
}

// Performed.
impl<'a> Message<'a> {
    fn invoked(&mut self, request_id: Option<String>) {
        self.outcome.invoke_request_id = request_id;
        self.next = Next::Nothing;
    }

    /// Its call failed, so it waits for a while.
    fn failed(&mut self, problem: CallFailure, cause: Cause, now: Timestamp) {
        self.outcome.kept = Some(cause);
        self.outcome.problem = Some(problem);
        self.next = Next::Wait(Wait::after_failure(self.record, now));
    }

    /// Without a guard, the message stays instead of being moved.
    fn guarded(&mut self, is_hidden: bool) {
        self.guard = if is_hidden { Guard::Hidden } else { Guard::Failed };
        if let (Guard::Failed, Next::Move(wait)) = (self.guard, &self.next) {
            self.next = Next::Wait(*wait);
        }
    }

    /// If the hiding failed, the message returns after the queue's own timeout, or when its guard ends.
    fn hidden(&mut self, timeout: Duration, answer: Answer) {
        match (&self.outcome.problem, answer) {
            (None, answer) => self.outcome.problem = answer.err(),
            (Some(_), Ok(())) => self.outcome.hidden_for = Some(timeout),
            (Some(_), Err(_)) => {}
        }
        self.next = Next::Nothing;
    }

    /// The copy that takes its place, if it is to be moved.
    fn copy(&self) -> Option<Move<'a>> {
        let Next::Move(wait) = &self.next else { return None };
        Some(self.copy_for(wait))
    }

    fn copy_for(&self, wait: &Wait) -> Move<'a> {
        let attribute = Moved::next(self.record, wait.not_before, self.outcome.problem.is_none());
        Move { record: self.record, attribute, delay: wait.hop() }
    }

    /// The cost of its moves, in bytes to be sent; `u64::MAX` if it must not be moved.
    fn cost_of_moves(&self, wait: &Wait) -> u64 {
        let bytes = self.copy_for(wait).size();
        let may_move = self.guard != Guard::Failed && bytes <= SQS_MESSAGE_BYTES;
        if may_move { wait.hops() * bytes as u64 } else { u64::MAX }
    }

    fn moved(&mut self, copy: &Move<'_>) {
        if let Next::Move(wait) = &self.next {
            self.outcome.not_before = wait.not_before;
        }
        self.outcome.moved = Some(copy.delay);
        self.next = Next::Nothing;
    }

    /// Its copy was not accepted, or may be on its way: it waits after all, for this long at least.
    fn stay(&mut self, at_least: Duration) {
        let Next::Move(mut wait) = self.next else { return };
        wait.visibility_timeout = wait.visibility_timeout.max(at_least);
        if let Some(step) = &mut self.outcome.step {
            step.hide_for(wait.visibility_timeout);
        }
        self.next = Next::Wait(wait);
    }
}

/// Whether a pause would change the action. SQS's own 14 days run on during a pause.
fn depends_on_pauses(action: &Action<'_>, record: &Record, now: Timestamp) -> bool {
    match action {
        Action::Reinvoke { .. } => true,
        Action::DeadLetter { reason, .. } => {
            reason.code == ReasonCode::MaxAge && expiring(record, record.sent, now).is_none()
        }
        Action::Defer { .. } | Action::Hold { .. } => false,
    }
}

/// SQS may deliver a message twice in one batch. The copies are one event, so only the later is handled: its receipt
/// handle is the valid one.
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

/// If there is no room to hide all waiting messages, chooses the cheapest to be moved. A message stays if SQS would refuse its
/// copy, or if its guard failed.
fn choose_moves(messages: &mut [Message<'_>], room: u64) {
    let waiting = messages.iter_mut().filter_map(|message| match message.next {
        Next::Wait(wait) => Some((message, wait)),
        _ => None,
    });
    let mut waiting: Vec<_> = waiting.collect();
    if waiting.len() as u64 <= room {
        return;
    }
    waiting.sort_by_cached_key(|(message, wait)| Reverse(message.cost_of_moves(wait)));
    for (message, wait) in waiting.into_iter().skip(room as usize) {
        if message.cost_of_moves(&wait) < u64::MAX {
            message.next = Next::Move(wait);
        }
    }
}

fn moving<'m, 'a>(messages: &'m mut [Message<'a>]) -> impl Iterator<Item = &'m mut Message<'a>> {
    messages.iter_mut().filter(|message| matches!(message.next, Next::Move(_)))
}

async fn send_dead_letters<A: Account>(
    messages: &mut [Message<'_>],
    now: Timestamp,
    account: &Guarded<'_, A>,
) {
    let given_up = messages.iter().filter_map(|message| match &message.next {
        Next::SendDeadLetter(letter) => Some(GivenUp { record: message.record, letter }),
        _ => None,
    });
    let given_up: Vec<GivenUp<'_>> = given_up.collect();
    let mut answers = account.send_dead_letters(&given_up).await;
    for message in messages.iter_mut().filter(|message| matches!(message.next, Next::SendDeadLetter(_))) {
        match answers.next_answer() {
            Ok(()) => message.next = Next::Nothing,
            Err(problem) => message.failed(problem, Cause::DeadLetterNotSent, now),
        }
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

/// An environment that has never looked has no room.
async fn first_look_of<A: Account>(
    room: &mut Room,
    now: Timestamp,
    account: &Guarded<'_, A>,
) -> Option<CallFailure> {
    if room.is_unknown() { look(room, now, account).await } else { None }
}

/// Measures the room, if little is left.
async fn look<A: Account>(room: &mut Room, now: Timestamp, account: &Guarded<'_, A>) -> Option<CallFailure> {
    if !room.is_low(now) {
        return None;
    }
    let look = account.look().await?;
    room.looked(&look, now);
    look.err()
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    /// No message is known that makes `decide` panic, so the test panics in its place.
    #[test]
    fn a_message_whose_decision_panics_is_kept_until_sqs_would_delete_it() {
        let sent = Timestamp::from_secs(1);
        let record = Record {
            message_id: "m-1".into(),
            receipt_handle: "h-1".into(),
            body: "7".into(),
            receive_count: 1,
            sent,
            first_receive: sent,
            moved: None,
            trace_header: None,
            attributes: Vec::new(),
        };
        let problem = isolated::<()>(|| resume_unwind(Box::new("planned"))).unwrap_err();
        let undecided = |now| {
            let mut message = Message::new(&record);
            message.keep_undecided(problem.clone(), now);
            message
        };
        let last = Timestamp::from_secs(1 + (13 * 24 + 12) * 3_600);
        let mut kept = undecided(last);
        let Next::Wait(wait) = kept.next else { panic!("it is not kept") };
        kept.hidden(wait.visibility_timeout, Ok(()));
        assert_eq!((&kept.outcome.step, kept.outcome.settled()), (&None, false));
        assert_eq!((kept.outcome.problem, kept.outcome.hidden_for), (Some(problem.clone()), Some(wait.left)));
        let late = undecided(last.saturating_add(Duration::from_millis(1)));
        assert!(matches!(late.next, Next::SendDeadLetter(_)));
    }
}
