use std::time::Duration;

use comeback_engine::{DeadLetter, Policy, ReasonCode, Record, Timestamp};
use comeback_envelope::open;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::books::{Attempt, Book, Books, Entry, Origin};
use super::bounds::{Bounds, Case, Claim, Look, UNHIDDEN};
use super::ledger::{Balance, EXPIRED, Ledger, MAX_RECEIVE_COUNT};
use super::pauses::{Known, between_reads};
use super::room::InFlightBound;
use super::{Broken, Invariant};
use crate::aws::agenda::START;
use crate::aws::queue::Removal;
use crate::aws::target::{Id, TARGET_ARN};
use crate::event::EventNumber;
use crate::faults::records::Flaw;
use crate::operators::OperatorPause;
use crate::scenario::Scenario;

/// A message that a handler has seen this lately does not expire: the longest backoff.
const RECENTLY: Duration = Duration::from_secs(12 * 3_600);
/// The handler counts the time between two reads of the pauses by its own clock, which may be wrong by 5 s at each.
const SKEW: Duration = Duration::from_secs(10);

/// Checks the invariants. Each public method is something that happened; the first broken invariant is kept.
#[derive(Debug)]
pub(crate) struct Oracle {
    ledger: Ledger,
    books: Books,
    bounds: Bounds,
    in_flight_bound: InFlightBound,
    pauses: Vec<OperatorPause>,
    longest_between_reads: Duration,
    payload_size: usize,
    /// A text buffer.
    payload: String,
    hands: Option<Hands>,
    broken: Option<Broken>,
}

/// What an environment of the handler can know of the pauses.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    known: Known,
    last_tried: Option<Timestamp>,
}

/// A message as it reaches the handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) entry: Entry,
    pub(crate) origin: Origin,
    pub(crate) record: &'a Record,
    /// It lacks a field, so that the handler only reports it failed.
    pub(crate) overlooked: bool,
}

/// How a handler starts on a batch.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) received_at: Timestamp,
    /// The handler's clock.
    pub(crate) clock: Timestamp,
    /// It is older than moves and pauses.
    pub(crate) is_old: bool,
    /// It lives, and has time for its calls.
    pub(crate) can_act: bool,
    pub(crate) reads: Reads,
}

/// The batch in a handler's hands.
#[derive(Debug)]
struct Hands {
    start: Start,
    messages: Vec<InHand>,
}

#[derive(Clone, Copy, Debug)]
struct InHand {
    entry: Entry,
    look: Look,
    overlooked: bool,
    done: Done,
    /// Its re-invocation was sent, and the handler does not know whether it was accepted.
    unanswered: bool,
    /// A copy of it was accepted, and the handler does not know.
    copied: bool,
    /// The reason in its dead-letter.
    reason: Option<ReasonCode>,
}

/// What the handler has done about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// Nothing, or it gave the message its backoff.
    Waits,
    /// It tried to re-invoke or to dead-letter the message.
    Tried,
    /// That, or a copy of the message, was accepted, whether or not the handler knows.
    Settled,
}

impl Oracle {
    pub(crate) fn new(scenario: &Scenario, policy: &Policy) -> Self {
        Self {
            ledger: Ledger::new(scenario.events),
            books: Books::default(),
            bounds: Bounds::of(policy),
            in_flight_bound: InFlightBound::of(policy, scenario),
            pauses: scenario.pauses.clone(),
            longest_between_reads: between_reads(policy.maximum_concurrency()) + SKEW,
            payload_size: scenario.payload_size,
            payload: String::new(),
            hands: None,
            broken: None,
        }
    }

    /// The first invariant that was broken.
    pub(crate) fn take_broken(&mut self) -> Option<Broken> {
        self.broken.take()
    }

    /// The run is over. An error if an event has vanished.
    pub(crate) fn end(self) -> Result<(Ledger, Balance), Broken> {
        let balance = self.ledger.balance()?;
        Ok((self.ledger, balance))
    }

    fn note<T>(&mut self, checked: Result<T, Broken>) -> Option<T> {
        checked.map_err(|broken| self.broken.get_or_insert(broken)).ok()
    }
}

/// Events and invocations.
impl Oracle {
    /// An event reaches the target.
    pub(crate) fn arrived(&mut self, event: EventNumber, now: Timestamp) {
        self.ledger.arrives(event, now);
    }

    /// An invocation ends. If it fails, Lambda has [sent](Self::sent) its record.
    pub(crate) fn invocation_ended(&mut self, event: EventNumber, succeeded: bool, now: Timestamp) {
        if succeeded {
            self.ledger.deliver(event, now);
        }
        self.drop_carrier(event);
    }

    fn drop_carrier(&mut self, event: EventNumber) {
        let dropped = self.ledger.drop_carrier(event);
        self.note(dropped);
    }
}

/// Messages and the queue.
impl Oracle {
    /// Lambda sends the record of a failed attempt.
    pub(crate) fn sent(&mut self, id: Id, event: EventNumber, now: Timestamp) -> Entry {
        self.ledger.fail(event, now);
        self.ledger.carry(event);
        self.books.open(Book::new(id, now))
    }

    /// SQS hands a message out though somebody has it.
    pub(crate) fn duplicated(&mut self, entry: Entry) {
        self.books.excuse(entry);
        if let Some(book) = self.books.get(entry) {
            book.duplicated = true;
            book.hops.excuse();
        }
    }

    /// A message's receipt handle is stale.
    pub(crate) fn made_stale(&mut self, entry: Entry) {
        self.books.excuse(entry);
    }

    /// A message's receive count is too low. If it looks like a first receive, its wait counts from now.
    pub(crate) fn counted_low(&mut self, entry: Entry) {
        if let Some(book) = self.books.get(entry) {
            book.hops.excuse();
        }
    }

    /// A fault ends a message's retention.
    pub(crate) fn cut_retention(&mut self, entry: Entry) {
        if let Some(book) = self.books.get(entry) {
            book.cut = true;
        }
    }

    /// SQS removes a message by itself.
    pub(crate) fn removed(&mut self, entry: Entry, event: EventNumber, removal: Removal, now: Timestamp) {
        let Book { seen, cut, .. } = self.books.close(entry);
        let reason = match removal {
            Removal::ReceivedTooOften => MAX_RECEIVE_COUNT,
            Removal::Expired => EXPIRED,
        };
        if removal == Removal::Expired && !cut && now.since(seen) < RECENTLY {
            let detail = format!("expired; a handler decided about it at {seen}");
            self.note(Err::<(), _>(Broken::new(Invariant::NoneExpires, event, detail)));
        }
        // A handler may still be working on it.
        self.books.excuse(entry);
        self.ledger.give_up(event, reason);
        self.drop_carrier(event);
    }

    /// The mapping deletes a message that the handler did not report failed; `is_gone` unless its handle was stale.
    pub(crate) fn deleted(&mut self, entry: Entry, event: EventNumber, is_gone: bool) {
        if self.books.get(entry).is_some_and(|book| !book.settled) {
            let detail = "its message is deleted, and was neither re-invoked nor dead-lettered nor moved";
            self.note(Err::<(), _>(Broken::new(Invariant::LeavesForAReason, event, detail)));
        }
        if is_gone {
            self.books.close(entry);
            self.drop_carrier(event);
        }
    }

    /// After each happening: how many messages are in flight, and whether some are visible while a poller is free.
    pub(crate) fn queue_settled(&mut self, in_flight: usize, left_visible: bool) {
        let checked = self.in_flight_bound.check(in_flight, left_visible);
        self.note(checked);
    }
}

/// A handler and its batch.
impl Oracle {
    /// A new environment of the handler.
    pub(crate) fn environment_made(&self) -> Reads {
        let known = if self.pauses.is_empty() { Known::none() } else { Known::Nothing };
        Reads { known, last_tried: None }
    }

    /// A handler's calls begin.
    pub(crate) fn started<'a>(
        &mut self,
        mut start: Start,
        messages: impl Iterator<Item = Seen<'a>>,
        now: Timestamp,
    ) {
        if start.is_old {
            start.reads.known = Known::none();
        }
        let messages = messages.map(|seen| self.take_in_hand(&start, &seen, now)).collect();
        self.hands = Some(Hands { start, messages });
    }

    fn take_in_hand(&mut self, start: &Start, seen: &Seen<'_>, now: Timestamp) -> InHand {
        let &Seen { entry, origin, record, overlooked } = seen;
        let book = self.books.get(entry);
        let book = book.map(|book| {
            if start.can_act {
                book.seen = now;
            }
            if start.clock != start.received_at || start.is_old {
                book.hops.excuse();
            }
            // An old handler knows of no wait that a copy carries.
            book.duplicated |= start.is_old;
            &*book
        });
        let first_sent = record.moved.as_ref().map_or(record.sent, |moved| moved.sent);
        let counts_as_new = start.is_old || book.is_none_or(|book| book.forgotten);
        let origin = if counts_as_new { origin.of_new_message(first_sent) } else { origin };
        let book = book.filter(|_| !start.is_old);
        let look = Look {
            origin,
            receive_count: record.receive_count,
            first_receive: record.first_receive,
            sent: record.sent,
            asked: origin.window(first_sent),
            not_before: book.map_or(START, |book| book.not_before),
            held_until: book.and_then(|book| book.hops.held_until),
        };
        let done = Done::Waits;
        InHand { entry, look, overlooked, done, unanswered: false, copied: false, reason: None }
    }

    /// The handler tries to read the pauses; `read` is the moment whose pauses it gets.
    pub(crate) fn read_pauses(&mut self, read: Option<Timestamp>, now: Timestamp) {
        let known = read.map(|moment| Known::at(&self.pauses, moment));
        let reads = &mut self.hands_mut().start.reads;
        reads.last_tried = Some(now);
        if let Some(known) = known {
            reads.known = known;
        }
    }

    /// By the due time that the handler reports, a hop ends then.
    pub(crate) fn hop_reported(&mut self, message_id: &str, delay: Duration, due: Timestamp) {
        let end = self.hands().start.clock.saturating_add(delay);
        if end.since(due) > Duration::from_secs(1) {
            let detail = format!("message {message_id}: its hop ends at {end}, it is due at {due}");
            self.note(Err::<(), _>(Broken::new(Invariant::HopsEndInTime, None, detail)));
        }
    }

    /// The handler is done with its batch. Returns what its environment knows of the pauses from now on.
    pub(crate) fn finished(&mut self) -> Reads {
        self.hands.take().expect("BUG: a batch ends that never began").start.reads
    }

    /// SQS deletes nothing of the batch: the handler died, or the deletion was lost. What it has done will be done again.
    pub(crate) fn kept_after_all(&mut self) {
        let settled = self.hands().messages.iter().filter(|message| message.done == Done::Settled);
        let settled: Vec<Entry> = settled.map(|message| message.entry).collect();
        settled.into_iter().for_each(|entry| self.books.excuse(entry));
    }

    fn hands(&self) -> &Hands {
        self.hands.as_ref().expect("BUG: calls come from a handler")
    }

    fn hands_mut(&mut self) -> &mut Hands {
        self.hands.as_mut().expect("BUG: calls come from a handler")
    }

    fn in_hand(&self, position: usize) -> &InHand {
        &self.hands().messages[position]
    }

    /// Changes what is noted of a message, of which the batch may have several copies.
    fn mark(&mut self, position: usize, change: impl Fn(&mut InHand)) {
        let entry = self.in_hand(position).entry;
        let copies = self.hands_mut().messages.iter_mut().filter(|copy| copy.entry == entry);
        copies.for_each(change);
    }

    fn mark_done(&mut self, position: usize, done: Done) {
        self.mark(position, |copy| copy.done = if copy.overlooked { Done::Waits } else { done });
    }

    fn case(&self, position: usize) -> Case<'_> {
        let Hands { start, messages } = self.hands();
        let look = &messages[position].look;
        let Attempt { event, anew, .. } = look.origin.attempt;
        let first_failure = anew.unwrap_or_else(|| self.ledger.first_failure(event));
        Case { look, now: start.clock, first_failure, known: &start.reads.known }
    }
}

/// Calls of the handler, each about the message at a position of its batch.
impl Oracle {
    /// The handler asks to hide a message.
    pub(crate) fn hides(&mut self, position: usize, hidden_for: Duration) {
        let (case, message) = (self.case(position), *self.in_hand(position));
        if message.copied {
            let checked = self.bounds.hiding_after_lost_copy(&case, hidden_for);
            self.note(checked);
        } else if message.done != Done::Waits {
            let checked = if message.unanswered {
                self.bounds.hiding_after_unanswered(&case, hidden_for)
            } else {
                self.bounds.hiding_after_failure(&case, hidden_for)
            };
            self.note(checked);
        } else if !case.is_held(hidden_for) && !self.bounds.may_be_kept(&case, hidden_for) {
            let checked = self.bounds.deferral(&case, hidden_for);
            let is_old = self.hands().start.is_old;
            let Some(not_before) = self.note(checked) else { return };
            // An old handler's backoff is not the one that the message's copies will serve.
            if let Some(book) = self.books.get(message.entry).filter(|_| !is_old) {
                book.not_before = book.not_before.max(not_before);
            }
        }
    }

    /// A message is hidden.
    pub(crate) fn hidden(&mut self, position: usize, until: Timestamp) {
        let InHand { entry, unanswered, .. } = *self.in_hand(position);
        if let Some(book) = self.books.get(entry).filter(|_| unanswered) {
            book.no_invoke_before = until;
        }
    }

    /// The handler re-invokes a function for a message.
    pub(crate) fn reinvokes(&mut self, position: usize, function_arn: &str, payload: &str) {
        let checked = self.check_reinvocation(position, function_arn, payload);
        self.note(checked);
        self.mark_done(position, Done::Tried);
    }

    fn check_reinvocation(
        &mut self,
        position: usize,
        function_arn: &str,
        payload: &str,
    ) -> Result<(), Broken> {
        let Origin { attempt: Attempt { event, .. }, flaw, .. } = self.in_hand(position).look.origin;
        if function_arn.strip_suffix(":$LATEST").unwrap_or(function_arn) != TARGET_ARN || flaw.is_some() {
            return Err(Broken::new(Invariant::AllowList, event, format!("{function_arn} was invoked")));
        }
        let claim = self.check_envelope(event, payload)?;
        self.check_paused(event)?;
        self.bounds.reinvocation(&self.case(position), claim)
    }

    /// Opens the envelope of a re-invocation as a target does. Returns what it claims.
    fn check_envelope(&mut self, event: EventNumber, invoked_with: &str) -> Result<Claim, Broken> {
        let broken = |detail: &str| Broken::new(Invariant::PayloadVerbatim, event, detail);
        let raw: &RawValue =
            serde_json::from_str(invoked_with).map_err(|_| broken("the target got no JSON"))?;
        let opened = open(raw)
            .map_err(|malformed| broken(&format!("the target got a malformed envelope: {malformed}")))?;
        if !self.is_payload_of(event, opened.payload.get()) {
            return Err(broken(&format!("the target got {}", opened.payload.get())));
        }
        let metadata = opened.metadata.ok_or_else(|| broken("the target got no envelope"))?;
        Ok(Claim { attempt: metadata.attempt, initial_timestamp: metadata.initial_timestamp })
    }

    fn is_payload_of(&mut self, event: EventNumber, payload: &str) -> bool {
        event.write_payload(self.payload_size, &mut self.payload);
        payload == self.payload
    }

    /// Checks that the handler of a re-invocation knows of no pause, and that it has tried to know of them.
    fn check_paused(&self, event: EventNumber) -> Result<(), Broken> {
        let Start { received_at, clock, is_old, ref reads, .. } = self.hands().start;
        let broken = |why: String| {
            Err(Broken::new(Invariant::PausedNotInvoked, event, format!("invoked at {clock}; {why}")))
        };
        if let Some(why) = reads.known.forbids_invokes(clock) {
            return broken(why);
        }
        if self.pauses.is_empty() || is_old {
            return Ok(());
        }
        match reads.last_tried {
            Some(tried) if received_at.since(tried) <= self.longest_between_reads => Ok(()),
            Some(tried) => broken(format!("its handler last tried to read at {tried}")),
            None => broken("its handler has not tried to read the pauses".into()),
        }
    }

    /// Lambda accepts a re-invocation. Returns the attempt that it begins.
    pub(crate) fn reinvoked(&mut self, position: usize, now: Timestamp) -> Attempt {
        self.ledger.duplicates.retries += u64::from(self.settle(position));
        let Attempt { event, number, anew } = self.in_hand(position).look.origin.attempt;
        self.ledger.attempt(event, number + 1);
        self.space(position, now);
        Attempt { event, number: number + 1, anew }
    }

    /// The handler gets no answer to an invoke, which was accepted or not.
    pub(crate) fn invoke_unanswered(&mut self, position: usize, accepted: bool, now: Timestamp) {
        if accepted {
            self.books.excuse(self.in_hand(position).entry);
        } else {
            self.space(position, now);
        }
        self.mark(position, |copy| copy.unanswered = true);
    }

    /// Checks an invoke that is not refused. Until something hides its message, it comes back when the queue's own timeout
    /// ends.
    fn space(&mut self, position: usize, now: Timestamp) {
        let InHand { entry, look, .. } = *self.in_hand(position);
        let unhidden = self.hands().start.received_at.saturating_add(UNHIDDEN);
        let Some(book) = self.books.get(entry) else { return };
        let earliest = std::mem::replace(&mut book.no_invoke_before, unhidden);
        if now < earliest && !book.duplicated {
            let detail = format!("invoked at {now}; an invoke before it keeps the next until {earliest}");
            let event = look.origin.attempt.event;
            self.note(Err::<(), _>(Broken::new(Invariant::SpacedInvokes, event, detail)));
        }
    }

    /// The handler dead-letters a message, whose body is `original` if it is still on the queue.
    pub(crate) fn gives_up(&mut self, position: usize, letter: &DeadLetter, original: Option<&str>) {
        let checked = self.check_dead_letter(position, letter, original);
        let reason = self.note(checked);
        self.mark(position, |copy| copy.reason = reason);
        self.mark_done(position, Done::Tried);
    }

    fn check_dead_letter(
        &mut self,
        position: usize,
        letter: &DeadLetter,
        original: Option<&str>,
    ) -> Result<ReasonCode, Broken> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            payload: &'a RawValue,
            retries_made: u64,
        }
        let Origin { attempt: Attempt { event, number, .. }, flaw, .. } = self.in_hand(position).look.origin;
        let broken = |invariant, detail: String| Err(Broken::new(invariant, event, detail));
        let reason = letter.attributes.iter().find(|attribute| attribute.name == "Reason");
        let reason =
            reason.and_then(|reason| ReasonCode::ALL.into_iter().find(|it| it.name() == reason.value));
        let Some(reason) = reason else {
            return broken(
                Invariant::TrueReasons,
                format!("a dead-letter has no known reason: {}", letter.body),
            );
        };
        if flaw == Some(Flaw::Unreadable) {
            if original.is_some_and(|original| original != letter.body) {
                return broken(Invariant::PayloadVerbatim, format!("its dead-letter is {}", letter.body));
            }
        } else {
            let body: Option<Body<'_>> = serde_json::from_str(&letter.body).ok();
            let Some(body) = body.filter(|body| self.is_payload_of(event, body.payload.get())) else {
                return broken(Invariant::PayloadVerbatim, format!("its dead-letter is {}", letter.body));
            };
            if body.retries_made != number {
                let said = body.retries_made;
                let detail = format!("its dead-letter says {said} retries; attempt {number} has failed");
                return broken(Invariant::AttemptsByOne, detail);
            }
        }
        self.bounds.dead_letter(&self.case(position), reason).map(|()| reason)
    }

    /// SQS accepts a message's dead-letter.
    pub(crate) fn dead_lettered(&mut self, position: usize) {
        self.ledger.duplicates.dead_letters += u64::from(self.settle(position));
        let InHand { look, reason, .. } = *self.in_hand(position);
        if let Some(reason) = reason {
            self.ledger.give_up(look.origin.attempt.event, reason.name());
        }
    }

    /// The handler gets no answer to a dead-letter that was accepted.
    pub(crate) fn dead_letter_unanswered(&mut self, position: usize) {
        self.books.excuse(self.in_hand(position).entry);
    }

    /// The handler sends a message again; `altered` if the copy has another body.
    pub(crate) fn moves(&mut self, position: usize, delay: Duration, altered: bool) {
        let (case, done) = (self.case(position), self.in_hand(position).done);
        if altered {
            let broken = case.broken(Invariant::PayloadVerbatim, "its copy has another body");
            self.note(Err::<(), _>(broken));
        } else if done == Done::Waits && !case.is_held(delay) && !self.bounds.may_be_kept(&case, delay) {
            let checked = self.bounds.deferral(&case, delay);
            self.note(checked);
        }
    }

    /// SQS accepts a copy of a message.
    pub(crate) fn moved(&mut self, position: usize, delay: Duration, copy: Id, now: Timestamp) -> Entry {
        let InHand { entry, look, done, unanswered, .. } = *self.in_hand(position);
        let event = look.origin.attempt.event;
        let clock = self.hands().start.clock;
        let mut book = self.books.get(entry).map_or_else(
            // Another receiver has taken the message out of the queue meanwhile.
            || Book { duplicated: true, forgotten: true, ..Book::new(copy, clock) },
            |book| *book,
        );
        let case = self.case(position);
        if done != Done::Waits {
            let longest = self.bounds.longest_after_failure(&look, unanswered);
            book.hops.held_until = Some(clock.saturating_add(longest));
            book.hops.excuse();
            if unanswered {
                let shortest = self.bounds.shortest_after_unanswered(&case);
                book.no_invoke_before = clock.saturating_add(shortest);
            }
        } else if self.bounds.may_be_kept(&case, delay) {
            let after_failure = self.bounds.longest_after_failure(&look, false);
            let until = clock.saturating_add(case.known.longest_keep(after_failure));
            book.hops.held_until = book.hops.held_until.max(Some(until));
            book.hops.excuse();
        }
        book.hops.know_pauses(case.known.boundaries(clock));
        let hops = book.hops.after(clock, delay);
        if let Some(hops) =
            self.note(hops.map_err(|detail| Broken::new(Invariant::FewestHops, event, detail)))
        {
            book.hops = hops;
        }
        self.ledger.duplicates.moves += u64::from(self.settle(position));
        self.ledger.carry(event);
        self.books.open(book.of_copy(copy, now))
    }

    /// A copy loses its attribute, and with it all that it carried.
    pub(crate) fn attribute_lost(&mut self, copy: Entry, now: Timestamp) {
        if let Some(book) = self.books.get(copy) {
            book.forget(now);
        }
    }

    /// The handler gets no answer to a copy that was accepted.
    pub(crate) fn move_unanswered(&mut self, position: usize) {
        self.books.excuse(self.in_hand(position).entry);
        self.mark(position, |copy| copy.copied = true);
    }

    /// A message was re-invoked, dead-lettered or moved. Returns whether this is a duplicate.
    fn settle(&mut self, position: usize) -> bool {
        self.mark_done(position, Done::Settled);
        let InHand { entry, look, .. } = *self.in_hand(position);
        let settled = self.books.settle(entry).map_err(|_| {
            let detail = format!("message {} was re-invoked, dead-lettered or moved before", entry.id());
            Broken::new(Invariant::ExplainedDuplicates, look.origin.attempt.event, detail)
        });
        self.note(settled).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
