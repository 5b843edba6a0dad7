//! The handler's calls to AWS: each call is counted, passed to the oracle and exposed to faults.

use std::time::Duration;

use comeback_delivery::{EntryAnswer, ErrorKind, ServiceError};
use comeback_engine::{
    BatchReport, CallFailure, DeadLettered, HideUpTo, InFlightCount, InvokeFailure, Move, Record,
    VisibilityChange, What,
};
use rand::RngExt;

use super::batch::Batch;
use super::{NO_BATCH, World};
use crate::account::{Answers, Invoked, Service};
use crate::aws::agenda::START;
use crate::aws::draw_id;
use crate::aws::queue::{OutgoingMessage, QueuedAttributes};
use crate::check::history::Carried;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::figures::prices::ApiCall;
use crate::watch::Watcher;

/// The handler treats an invocation record that is older than this as redriven.
const A_DAY: Duration = Duration::from_secs(24 * 3_600);
/// Age of the pauses that a stale read returns.
const STALE: Duration = Duration::from_secs(600);

impl Service for World {
    fn lives_on(&mut self) -> bool {
        let batch = self.current_batch.as_mut().expect(NO_BATCH);
        let Some(death) = &mut batch.death else { return true };
        let left = death.calls.checked_sub(1);
        death.calls = left.unwrap_or_default();
        left.is_some()
    }

    fn change_visibility(&mut self, changes: &[&&VisibilityChange<'_>]) -> Answers {
        self.tallies.calls.add(ApiCall::ChangeMessageVisibilityBatch, 1);
        let positions = self.positions(changes.iter().map(|change| change.record));
        for (change, &position) in changes.iter().zip(&positions) {
            self.oracle.hides(position, change.visibility_timeout);
        }
        self.refuse(Fault::VisibilityRefused, &positions, "ServiceUnavailable", "the request has failed")?;
        let refused = self.refused_entries(&positions);
        let mut answers = Vec::with_capacity(changes.len());
        for ((change, refused), &position) in changes.iter().zip(refused).zip(&positions) {
            answers.push(self.hide(change, refused, position));
        }
        self.refuse(Fault::VisibilityLost, &positions, "", "no answer in time")?;
        Ok(answers)
    }

    fn invoke(&mut self, record: &Record, function_arn: &str, payload: String) -> Invoked {
        self.tallies.calls.add(ApiCall::InvokeTarget, 1);
        let position = self.current_batch().position(record);
        let event = self.current_batch().event(position);
        self.oracle.reinvokes(position, function_arn, &payload);
        if self.dice.strikes(Fault::InvokeThrottled, self.now, [event]) {
            return Err(InvokeFailure::Later(failure("TooManyRequestsException: Rate Exceeded")));
        }
        let unanswered = || Err(InvokeFailure::Unanswered("no answer in time".into()));
        if self.dice.strikes(Fault::InvokeTimedOut, self.now, [event]) {
            self.oracle.invoke_unanswered(position, false, self.now);
            return unanswered();
        }
        let attempt = self.oracle.reinvoked(position, self.now);
        self.tallies.retry_of(self.scenario.target_of(event), self.now);
        let invocation = self.start_invocation(attempt, payload);
        if self.dice.strikes(Fault::InvokeAnswerLost, self.now, [event]) {
            self.oracle.invoke_unanswered(position, true, self.now);
            return unanswered();
        }
        Ok(Some(self.target.request_id(invocation)))
    }

    fn decides_to_dead_letter(&mut self, dead_lettered: &[DeadLettered<'_>]) {
        for DeadLettered { record, dead_letter } in dead_lettered {
            let position = self.current_batch().position(record);
            let original = self.queue.message(self.current_batch().messages[position].receipt);
            self.oracle.dead_letters(position, dead_letter, original.map(|message| message.body.as_str()));
        }
    }

    fn send_dead_letters(&mut self, dead_lettered: &[&&DeadLettered<'_>]) -> Answers {
        let bytes = dead_lettered.iter().map(|dead_lettered| dead_lettered.dead_letter.size()).sum();
        self.tallies.calls.add_carrying(ApiCall::SendMessageBatch, bytes);
        let positions = self.positions(dead_lettered.iter().map(|dead_lettered| dead_lettered.record));
        self.refuse(Fault::DeadLetterRefused, &positions, "ServiceUnavailable", "the request has failed")?;
        for &position in &positions {
            self.oracle.dead_lettered(position);
            self.tallies.minute(self.now).dead_lettered += 1;
        }
        let lost = self.refuse(Fault::DeadLetterLost, &positions, "", "no answer in time");
        if lost.is_err() {
            for position in positions {
                self.current_batch().messages[position].carried.excuse();
            }
        }
        lost.map(|()| vec![Ok(()); dead_lettered.len()])
    }

    fn send_again(&mut self, moves: &[&&Move<'_>]) -> Answers {
        let positions = self.positions(moves.iter().map(|copy| copy.record));
        for (copy, &position) in moves.iter().zip(&positions) {
            let original = self.queue.message(self.current_batch().messages[position].receipt);
            let altered = original.is_some_and(|original| original.body != copy.record.body);
            self.oracle.moves(position, copy.delay, altered);
        }
        let bytes = moves.iter().map(|copy| copy.size()).sum();
        self.tallies.calls.add_carrying(ApiCall::SendAgain, bytes);
        self.refuse(Fault::MoveRefused, &positions, "InvalidParameterValue", "the request is refused")?;
        self.refuse(Fault::MoveThrottled, &positions, "RequestThrottled", "the request has failed")?;
        for (copy, &position) in moves.iter().zip(&positions) {
            self.accept_move(copy, position);
        }
        let death = self.current_batch.as_mut().and_then(|batch| batch.death.as_mut());
        if let Some(death) = death.filter(|death| death.fault == Fault::HandlerDiedAfterMove) {
            death.calls = 0;
        }
        let lost = self.refuse(Fault::MoveLost, &positions, "", "no answer in time");
        if lost.is_err() {
            positions.into_iter().for_each(|position| self.oracle.move_unanswered(position));
        }
        lost.map(|()| vec![Ok(()); moves.len()])
    }

    fn count_in_flight(&mut self) -> Result<InFlightCount, CallFailure> {
        self.tallies.calls.add(ApiCall::GetQueueAttributes, 1);
        if self.dice.strikes(Fault::CountFailed, self.now, []) {
            return Err(failure("no count in time"));
        }
        let in_flight = self.counts.get(self.dice.strikes(Fault::CountStale, self.now, []));
        let Batch { clock, started, .. } = *self.current_batch();
        Ok(InFlightCount { in_flight, at: clock.saturating_add(self.now.since(started)) })
    }

    fn read_pauses(&mut self) -> Result<Option<String>, CallFailure> {
        self.tallies.calls.add(ApiCall::ReadPauses, 1);
        let now = self.now;
        for (fault, cause) in [
            (Fault::PausesDenied, "AccessDeniedException: not allowed"),
            (Fault::PausesThrottled, "ThrottlingException: Rate exceeded"),
            (Fault::PausesLate, "not read within a second"),
        ] {
            if self.dice.strikes(fault, now, []) {
                self.oracle.read_pauses(None, now);
                return Err(failure(cause));
            }
        }
        let is_stale = self.dice.strikes(Fault::PausesStale, now, []);
        let age = if is_stale { STALE } else { Duration::ZERO };
        let moment = now.before(age);
        let mut text = self.operated.text(moment);
        let is_garbled = text.is_some() && self.dice.strikes(Fault::PausesGarbled, now, []);
        if let Some(text) = text.as_mut().filter(|_| is_garbled) {
            text.truncate(text.len() / 2);
        }
        self.oracle.read_pauses((!is_garbled).then_some(moment), now);
        Ok(text)
    }
}

impl World {
    /// Returns an error with this code and message if the fault strikes; an empty code means no response from AWS.
    fn refuse(&mut self, fault: Fault, positions: &[usize], code: &str, message: &str) -> EntryAnswer {
        let kind = match fault {
            Fault::MoveRefused => ErrorKind::Refused,
            Fault::MoveThrottled => ErrorKind::Throttled,
            _ => ErrorKind::Transient,
        };
        let batch = self.current_batch.as_ref().expect(NO_BATCH);
        if self.dice.strikes(fault, self.now, positions.iter().map(|&position| batch.event(position))) {
            return Err(ServiceError::new(kind, code, message));
        }
        Ok(())
    }

    fn hide(&mut self, change: &VisibilityChange<'_>, refused: bool, position: usize) -> EntryAnswer {
        if refused {
            return Err(ServiceError::new(ErrorKind::Transient, "InternalError", "the entry has failed"));
        }
        let VisibilityChange { record, visibility_timeout: timeout } = *change;
        let hidden =
            self.queue.change_visibility(self.now, &mut self.agenda, &record.receipt_handle, timeout);
        hidden.map_err(|error| ServiceError::new(ErrorKind::Refused, "", error))?;
        self.oracle.hidden(position, self.now.saturating_add(timeout));
        Ok(())
    }

    /// Chooses at random the entries that SQS refuses in a batch call. Returns true for each refused entry.
    fn refused_entries(&mut self, positions: &[usize]) -> Vec<bool> {
        let Some(rng) = self.dice.roll(Fault::VisibilityHalfRefused, self.now) else {
            return vec![false; positions.len()];
        };
        let refused: Vec<bool> = positions.iter().map(|_| rng.random_bool(0.5)).collect();
        if refused.contains(&true) {
            let batch = self.current_batch.as_ref().expect(NO_BATCH);
            let struck = positions.iter().zip(&refused).filter(|(_, refused)| **refused);
            self.dice.note(Fault::VisibilityHalfRefused, struck.map(|(&position, _)| batch.event(position)));
        }
        refused
    }

    fn accept_move(&mut self, copy: &Move<'_>, position: usize) {
        let origin = self.current_batch().messages[position].carried.origin;
        let trace_header = copy.record.trace_header.as_deref().map(Into::into);
        let mut attributes =
            QueuedAttributes { comeback: Some(copy.attribute.as_str().into()), trace_header };
        let id = draw_id(&mut self.copy_ids);
        let history = self.oracle.moved(position, copy.delay, self.now);
        if self.strike_attribute(copy, origin.attempt.event, &mut attributes) {
            // The attribute held all data about earlier waits.
            history.borrow_mut().forget(self.now);
            // A copy of an old record counts as a redriven event, which has another key in the log.
            if origin.written.is_some_and(|written| self.now.since(written) > A_DAY) {
                self.log.excuse(origin.attempt.event);
            }
        }
        let body = self.target.copy(&copy.record.body);
        let (attributes, carried) = (Some(Box::new(attributes)), Carried { history, origin });
        self.enqueue(OutgoingMessage { id, body, delay: copy.delay, attributes, carried });
        self.tallies.moves += 1;
        let hide_up_to =
            if let HideUpTo::UpTo(most) = self.policy.settings().hide_up_to { most as usize } else { 0 };
        let has_room = 2 * self.queue.depth().in_flight < hide_up_to;
        self.tallies.moves_with_room += u64::from(has_room);
    }

    /// Lets faults truncate or remove the message attribute of a moved message. Returns true if a fault strikes.
    fn strike_attribute(
        &mut self,
        copy: &Move<'_>,
        event: EventNumber,
        attributes: &mut QueuedAttributes,
    ) -> bool {
        // Without these members, a copy that lost its attribute would count as a different failure, with a different
        // key.
        if ![r#""timestamp":"#, r#""requestId":"#].iter().all(|member| copy.record.body.contains(member)) {
            return false;
        }
        if self.dice.strikes(Fault::AttributeGarbled, self.now, [event]) {
            attributes.comeback = Some(copy.attribute[..copy.attribute.len() / 2].into());
        } else if self.dice.strikes(Fault::AttributeStripped, self.now, [event]) {
            attributes.comeback = None;
        } else {
            return false;
        }
        true
    }

    /// Processes the handler's report on a batch, and counts one log line for all messages that were only moved again.
    pub(crate) fn note_report(&mut self, report: &BatchReport<'_>, watcher: &mut dyn Watcher) {
        let batch = self.current_batch.as_ref().expect(NO_BATCH);
        for outcome in &report.outcomes {
            watcher.decided(self.now.since(START), batch.event_of(outcome.record), outcome);
        }
        let logged = self.log.reported(report, |record| batch.event_of(record), self.now);
        self.oracle.check(logged);
        self.operated.log(report, self.now);
        let mut quiet = 0;
        for outcome in &report.outcomes {
            quiet += u64::from(outcome.only_moves_on());
            let position = batch.position(outcome.record);
            if outcome.receipt_handle().is_some() {
                self.oracle.may_be_recalled(position, self.now);
            }
            if let (What::Defer { due, .. }, Some(delay)) = (&outcome.what, outcome.delay()) {
                self.oracle.hop_reported(position, delay, *due);
            }
        }
        self.tallies.decisions = self.tallies.decisions + u64::from(quiet > 0) - quiet;
    }

    fn positions<'r>(&self, records: impl Iterator<Item = &'r Record>) -> Vec<usize> {
        let batch = self.current_batch();
        records.map(|record| batch.position(record)).collect()
    }
}

fn failure(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}
